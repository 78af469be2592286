package importer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
)

func TestRetryAfterIsHonored(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header string
		least  time.Duration
	}{
		"429 with seconds": {http.StatusTooManyRequests, "70", 70 * time.Second},
		"503 with seconds": {http.StatusServiceUnavailable, "7", 7 * time.Second},
		"503 with a date":  {http.StatusServiceUnavailable, "Tue, 06 May 2031 07:10:00 GMT", 111 * time.Second},
		"503 with nothing": {http.StatusServiceUnavailable, "", minDelay / 2},
		"nonsense":         {http.StatusServiceUnavailable, "soon", minDelay / 2},
		"a proxy's 502":    {http.StatusBadGateway, "", minDelay / 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.fault(func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
				if n > 1 {
					next.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Retry-After", c.header)
				w.WriteHeader(c.status)
			})
			clock := &fakeClock{}
			p, failures, err := s.runWith(t.Context(), Options{Concurrency: 1}, clock, books(3))
			s.must(err)
			s.wantProgress(p, Progress{Read: 3, Created: 3, Complete: 3})
			if s.requests.Load() != 4 || len(failures) > 0 || clock.slept < c.least {
				t.Errorf("%d requests, slept %s, failures %q", s.requests.Load(), clock.slept, failures)
			}
		})
	}
}

func TestPauseAppliesToAllWorkers(t *testing.T) {
	clock := &fakeClock{}
	p := pause{clock: clock}
	p.extend(time.Minute)
	p.extend(time.Second)
	if err := p.wait(t.Context()); err != nil || clock.slept != time.Minute {
		t.Errorf("slept %s, %v", clock.slept, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p.wait(ctx) == nil {
		t.Error("an interruption is not seen")
	}
}

func TestRetriesAreLimited(t *testing.T) {
	s := serve(t)
	s.fault(func(_ int64, w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"detail":"the disk is full"}`, http.StatusServiceUnavailable)
	})
	clock := &fakeClock{}
	p, failures, err := s.runWith(t.Context(), Options{Concurrency: 1}, clock, books(3))
	s.wantKind(err, errs.Unavailable)
	s.wantProgress(p, Progress{Read: 1})
	if len(failures) > 0 || !strings.Contains(err.Error(), "the disk is full (503)") || s.requests.Load() != maxTries {
		t.Errorf("%v after %d requests, failures %q", err, s.requests.Load(), failures)
	}
}

// One object that is refused repeatedly does not end an import whose other objects
// succeed.
func TestRetriesContinueWhileOtherRequestsSucceed(t *testing.T) {
	const refusals = 4 * maxTries
	s := serve(t)
	other, done := make(chan bool), make(chan bool)
	refused := 0
	s.fault(func(_ int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
		body, err := io.ReadAll(r.Body)
		s.must(err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch first := strings.Contains(string(body), `"Book 0"`); {
		case first && refused < refusals:
			<-other
			refused++
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case first:
			close(done)
		default:
			select {
			case other <- true:
			case <-done:
			}
		}
		next.ServeHTTP(w, r)
	})
	p, _, err := s.run(Options{Concurrency: 2}, books(2*refusals))
	s.must(err)
	s.wantProgress(p, Progress{Read: 2 * refusals, Created: 2 * refusals, Complete: 2 * refusals})
}

// The import waits for a server that restarts; no object is lost or duplicated.
func TestImportSurvivesAnOutage(t *testing.T) {
	s := serve(t)
	s.fault(func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
		if n > 40 && n < 40+maxTries { // one object may meet them all
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	p, failures, err := s.run(Options{}, books(150))
	s.must(err)
	if p.Created+p.Existing != 150 || len(failures) > 0 {
		t.Errorf("%+v %q", p, failures)
	}
	s.wantObjects(150)
}
