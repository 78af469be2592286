package data

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

// Belfry waits for a backend that will recover, and says so; it does not wait for a folder, nor for what does
// not change by itself.
func TestAStartWaitsForBackendsThatRecover(t *testing.T) {
	c, err := config.Parse("belfry.yaml", []byte(`backends: {away: {type: mongodb, url: "mongodb://127.0.0.1:1"}}`),
		func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	logged := &kit.Tail{}
	wait := Awaiter{Startup: &serving.Startup{}, Log: slog.New(slog.NewTextHandler(logged, nil))}
	down := errs.New(errs.Unavailable, "the names of the servers can't be resolved")
	for _, try := range []struct {
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
		err := wait.Await(t.Context(), c, try.backend, func() error { attempts++; return try.results[attempts-1] })
		if attempts != try.attempts || !errors.Is(err, try.want) {
			t.Errorf("%s: %d attempts ended with %v, want %d and %v", try.backend, attempts, err, try.attempts,
				try.want)
		}
		if waiting := wait.Startup.Err(); err == nil && strings.Contains(waiting.Error(), "waits") {
			t.Errorf("the backend is there, and it says %v", waiting)
		}
	}
	if waiting := wait.Startup.Err(); !strings.Contains(waiting.Error(), "waits for backend away") {
		t.Errorf("it says %v", waiting)
	}
	log := logged.String()
	if n := strings.Count(log, "a backend is unavailable; retrying"); n != 2 ||
		!strings.Contains(log, "can't be resolved") || !strings.Contains(log, "the backend is available") {
		t.Errorf("%d waits are logged, want one for each start that waits:\n%s", n, log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := wait.Await(ctx, c, "away", func() error { cancel(); return down }); !errors.Is(err, errs.Unavailable) {
		t.Errorf("a start that was interrupted ended with %v", err)
	}
}
