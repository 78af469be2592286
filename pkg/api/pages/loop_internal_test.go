package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"belfry/internal/stopper"
)

// A loop that writes nothing is not ended by the bound of the output. A server that is asked to use it refuses, and is
// not busy with it from then on: whoever executes it is stopped.
func TestATemplateThatDoesNotEndIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"range": `{{define "content"}}{{if true}}{{with 1}}<p class="{{range 1000000000000}}{{end}}">{{end}}{{end}}{{end}}`,
		"calls": `{{define "content"}}` + strings.Repeat(`{{template "a" .}}`, 2) + `{{end}}` +
			doubling(60),
		"range in a script": `{{define "content"}}<script>{{range $i := 1000000000000}}{{else}}1{{end}}</script>{{end}}`,
	} {
		var stop stopper.Stopper
		loop, err := parse("", "{{template \"content\" .}}", loginPage, text, &stop)
		if err != nil {
			t.Fatal(err)
		}
		if err := try(loop, &stop, time.Millisecond); err == nil ||
			!strings.Contains(err.Error(), "does a range in it end") {
			t.Errorf("%s: %v", name, err)
		}
		if err := loop.Execute(io.Discard, View{}); !errors.Is(err, stopper.ErrStopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var stop stopper.Stopper
	loop, err := parse("", "{{template \"content\" .}}", loginPage, `{{define "content"}}{{range 1000}}x{{end}}{{end}}`,
		&stop)
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := errors.Join(try(loop, &stop, time.Hour), loop.Execute(&page, View{})); err != nil ||
		page.String() != strings.Repeat("x", 1000) {
		t.Errorf("%v: %q", err, page.String())
	}
}

// doubling defines templates of which each calls the next one twice.
func doubling(n int) string {
	var b strings.Builder
	name := func(i int) string { return strings.Repeat("a", i+1) }
	for i := range n {
		fmt.Fprintf(&b, `{{define %q}}{{template %q .}}{{template %q .}}{{end}}`, name(i), name(i+1), name(i+1))
	}
	fmt.Fprintf(&b, `{{define %q}}{{end}}`, name(n))
	return b.String()
}

func TestATemplateThatIncludesItselfIsRefused(t *testing.T) {
	var stop stopper.Stopper
	loop, err := parse("", "{{template \"content\" .}}", loginPage,
		`{{define "content"}}{{template "content" .}}{{template "content" .}}{{end}}`, &stop)
	if err != nil {
		t.Fatal(err)
	}
	if err := try(loop, &stop, time.Hour); err == nil || !strings.Contains(err.Error(), "depth") {
		t.Error(err)
	}
}

// A start executes no page of belfry's: every one takes whatever a page can have, and nothing.
func TestThePagesOfBelfryTakeEveryView(t *testing.T) {
	templates, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pageNames() {
		for _, v := range samples() {
			if page, err := templates.render(name, v); err != nil || !bytes.Contains(page, []byte("</html>")) {
				t.Errorf("%s: %v\n%s", name, err, page)
			}
		}
	}
}
