package httpkit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/apitest"
	"belfry/pkg/errs"
)

func TestProblemOfEachKind(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for kind, want := range map[errs.Kind]struct {
		status int
		slug   string
	}{
		errs.Internal:        {500, "internal"},
		errs.Invalid:         {400, "invalid"},
		errs.Unauthenticated: {401, "unauthenticated"},
		errs.Denied:          {403, "denied"},
		errs.NotFound:        {404, "not-found"},
		errs.Exists:          {409, "exists"},
		errs.Conflict:        {409, "conflict"},
		errs.Mismatch:        {412, "mismatch"},
		errs.TooLarge:        {413, "too-large"},
		errs.Unsupported:     {415, "unsupported"},
		errs.Limited:         {429, "limited"},
		errs.Unavailable:     {503, "unavailable"},
		errs.Canceled:        {503, "unavailable"},
	} {
		f.Faults.Set(func() error {
			return fmt.Errorf("on the way: %w", errs.Wrap(errors.New("SECRET"), kind, "what was wrong"))
		})
		r := f.Do("GET", "/books/emma", "").Want(want.status)
		p := r.Problem()
		if p.Type != "urn:belfry:problem:"+want.slug {
			t.Errorf("%v: type %q", kind, p.Type)
		}
		if (p.Detail == "what was wrong") == (kind == errs.Internal) || p.Detail == "" {
			t.Errorf("%v: detail %q", kind, p.Detail)
		}
		if strings.Contains(r.Text, "SECRET") {
			t.Errorf("%v: the reply has the cause: %s", kind, r.Text)
		}
		if retry := want.status == 429 || want.status == 503; retry != (r.Header.Get("Retry-After") == "1") {
			t.Errorf("%v: Retry-After %q", kind, r.Header.Get("Retry-After"))
		}
		if (want.status == 401) != (r.Header.Get("Www-Authenticate") == "Bearer") {
			t.Errorf("%v: WWW-Authenticate %q", kind, r.Header.Get("Www-Authenticate"))
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for after, want := range map[time.Duration]string{
		0: "1", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60",
	} {
		f.Faults.Set(func() error { return &errs.Error{Kind: errs.Limited, RetryAfter: after} })
		f.Do("GET", "/books/emma", "").Want(429).HasHeader("Retry-After", want)
	}
}

func TestProblemNamesFields(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Faults.Set(func() error {
		return &errs.Error{Kind: errs.Invalid, Message: "no",
			Fields: []errs.Field{{Pointer: "/a/0", Message: "a number is expected"}}}
	})
	p := f.Do("GET", "/books/emma", "").Want(400).Problem()
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/a/0" || p.Errors[0].Message != "a number is expected" {
		t.Errorf("errors: %+v", p.Errors)
	}
}

// An error without a kind is replied with as an internal error, and logged in full.
func TestInternalErrors(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Faults.Set(func() error { return errors.New("SECRET: disk on fire") })
	r := f.Do("GET", "/books/emma", "", "X-Request-Id", "r1").Want(500)
	if strings.Contains(r.Text, "SECRET") {
		t.Errorf("the reply has the cause: %s", r.Text)
	}
	record := f.Logs.Of("r1")
	if record["level"] != "ERROR" || record["error"] != "SECRET: disk on fire" || record["status"] != 500.0 {
		t.Errorf("logged: %v", record)
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Faults.Set(func() error { panic("SECRET") })
	r := f.Do("GET", "/books/emma", "", "X-Request-Id", "r1").Want(500)
	if strings.Contains(r.Text, "SECRET") {
		t.Errorf("the reply has the cause: %s", r.Text)
	}
	record := f.Logs.Of("r1")
	stack, _ := record["stack"].(string)
	if record["error"] != "panic: SECRET" || !strings.Contains(stack, "TestPanic") {
		t.Errorf("logged: %v", record)
	}
	f.Faults.Set(nil)
	f.Alive()
}

// http.ErrAbortHandler aborts the reply, as in net/http.
func TestAbort(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Faults.Set(func() error { panic(http.ErrAbortHandler) })
	r, err := http.NewRequestWithContext(t.Context(), "GET", f.URL+"/books/emma", http.NoBody)
	f.Must(err)
	r.Header.Set("X-Request-Id", "r1")
	if resp, err := f.Client().Do(r); err == nil {
		_ = resp.Body.Close()
		t.Errorf("status %d", resp.StatusCode)
	}
	if record := f.Logs.Of("r1"); record["status"] != 500.0 || record["level"] != "ERROR" {
		t.Errorf("logged: %v", record)
	}
	f.Faults.Set(nil)
	f.Alive()
}

// A client that disconnects is not an internal error.
func TestCanceledByClient(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	arrived := make(chan struct{})
	f.Faults.Hold(func(ctx context.Context) error {
		close(arrived)
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", f.URL+"/books/emma", http.NoBody)
	f.Must(err)
	r.Header.Set("X-Request-Id", "r1")
	go func() {
		<-arrived
		cancel()
	}()
	if resp, err := f.Client().Do(r); err == nil {
		_ = resp.Body.Close()
		t.Errorf("status %d", resp.StatusCode)
	}
	if record := f.Logs.Of("r1"); record["status"] != 408.0 || record["level"] != "DEBUG" {
		t.Errorf("logged: %v", record)
	}
}

// Problems are indented, for people who read them in a terminal.
func TestProblemsAreReadable(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Faults.Set(func() error { return errs.New(errs.Invalid, "a < b && c > d") })
	if r := f.Do("GET", "/books/emma", "").Want(400); !strings.Contains(r.Text, `"detail":"a < b && c > d"`) {
		t.Error(r.Text)
	}
}
