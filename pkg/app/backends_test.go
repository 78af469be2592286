package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"belfry/pkg/errs"
)

// Belfry waits for a backend that will recover, and says so; it does not wait for a folder, nor for what does
// not change by itself.
func TestAStartWaitsForBackendsThatRecover(t *testing.T) {
	p := newPlace(t, `backends: {away: {type: mongodb, url: "mongodb://127.0.0.1:1"}}`)
	wait := awaiter{startup: &startup{}, log: p.log()}
	down := errs.New(errs.Unavailable, "the names of the servers can't be resolved")
	for _, c := range []struct {
		backend  string
		results  []error
		attempts int
		want     error
	}{
		{"away", []error{down, down, nil}, 3, nil},
		{"away", []error{down, errs.New(errs.Internal, "wrong password")}, 2, errs.Internal},
		{"away", []error{errs.New(errs.Invalid, "wrong URL")}, 1, errs.Invalid},
		{"default", []error{down}, 1, errs.Unavailable},
	} {
		attempts := 0
		err := wait.backend(t.Context(), p.config, c.backend, func() error { attempts++; return c.results[attempts-1] })
		if attempts != c.attempts || !errors.Is(err, c.want) {
			t.Errorf("%s: %d attempts ended with %v, want %d and %v", c.backend, attempts, err, c.attempts, c.want)
		}
		if waiting := wait.startup.err(); err == nil && strings.Contains(waiting.Error(), "waits") {
			t.Errorf("the backend is there, and it says %v", waiting)
		}
	}
	if waiting := wait.startup.err(); !strings.Contains(waiting.Error(), "waits for backend away") {
		t.Errorf("it says %v", waiting)
	}
	log := p.logged.String()
	if n := strings.Count(log, "a backend is unavailable; retrying"); n != 2 || !strings.Contains(log, "can't be resolved") || !strings.Contains(log, "the backend is available") {
		t.Errorf("%d waits are logged, want one for each start that waits:\n%s", n, log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := wait.backend(ctx, p.config, "away", func() error { cancel(); return down }); !errors.Is(err, errs.Unavailable) {
		t.Errorf("a start that was interrupted ended with %v", err)
	}
}
