package stopper_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"text/template"
	"time"

	"belfry/internal/stopper"
)

// Whoever executes a template that takes too long is stopped: those that wait for it, and all later ones.
func TestATemplateIsStopped(t *testing.T) {
	t.Parallel()
	var stop stopper.Stopper
	loop := template.Must(template.New("").Funcs(stop.Functions()).Parse("{{range 1000000000000}}{{end}}"))
	stop.Watch(loop.Tree, nil)
	ended := make(chan error, 1)
	err := stop.Try(time.Millisecond, func() error {
		err := loop.Execute(io.Discard, nil)
		ended <- err
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "it takes longer than 1ms") {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, stopper.ErrStopped) {
		t.Error(err)
	}
	if err := loop.Execute(io.Discard, nil); !errors.Is(err, stopper.ErrStopped) {
		t.Error(err)
	}
}

func TestATemplateThatEndsIsNotChanged(t *testing.T) {
	t.Parallel()
	var stop stopper.Stopper
	short := template.Must(template.New("").Funcs(stop.Functions()).Parse("{{range 3}}x{{end}}"))
	stop.Watch(short.Tree)
	var text strings.Builder
	if err := stop.Try(time.Hour, func() error { return short.Execute(&text, nil) }); err != nil ||
		text.String() != "xxx" {
		t.Errorf("%q, %v", text.String(), err)
	}
	if err := stop.Try(time.Hour, func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
