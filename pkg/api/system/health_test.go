package system_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/system"
	"belfry/pkg/errs"
)

func TestHealth(t *testing.T) {
	var trouble, dead error
	var degraded []string
	f := apitest.Start(t, func(o *api.Options) {
		o.Ready = func(context.Context) ([]string, error) { return degraded, trouble }
		o.Alive = func() error { return dead }
	})
	for _, method := range []string{"GET", "HEAD"} {
		trouble = nil
		f.Do(method, "/healthz", "").Want(200).HasHeader("Cache-Control", "no-store")
		f.Do(method, "/readyz", "").Want(200).HasHeader("Cache-Control", "no-store")
		trouble = errs.Wrap(errors.New("SECRET"), errs.Unavailable, "the bus is unavailable")
		f.Do(method, "/healthz", "").Want(200)
		f.Do(method, "/livez", "").Want(200).HasHeader("Cache-Control", "no-store")
		f.Do(method, "/readyz", "").Want(503).HasHeader("Retry-After", "1")
	}
	f.Do("GET", "/readyz", "", "X-Request-Id", "r1").Want(503).Says("the bus is unavailable")
	if record := f.Logs.Of("r1"); record["error"] != "not ready: the bus is unavailable: SECRET" {
		t.Errorf("logged: %v", record)
	}
	trouble = errors.New("SECRET")
	if r := f.Do("GET", "/readyz", "").Want(503); strings.Contains(r.Text, "SECRET") {
		t.Errorf("the reply has the cause: %s", r.Text)
	}
	trouble, degraded = nil, []string{"the bus is unavailable"}
	if r := f.Do("GET", "/readyz", "").Want(200); r.Text != `{"status":"ok","degraded":["the bus is unavailable"]}`+
		"\n" {
		t.Errorf("degraded: %s", r.Text)
	}
	dead = errs.Wrap(errors.New("SECRET"), errs.Unavailable, "backend default has failed")
	for _, path := range []string{"/livez", "/healthz"} {
		if r := f.Do("GET", path, "").Want(503).Says("not alive: backend default has failed"); strings.Contains(r.Text,
			"SECRET") {
			t.Errorf("the reply has the cause: %s", r.Text)
		}
	}
	apitest.Start(t).Do("GET", "/readyz", "").Want(200)
	apitest.Start(t).Do("GET", "/livez", "").Want(200)
}

// Requests are counted by the route's template: a uuid, an unknown path or an
// unknown method creates no time series, and neither does a route that nobody requests.
func TestMetrics(t *testing.T) {
	f := apitest.Start(t, func(o *api.Options) {
		o.Registry = prometheus.NewPedanticRegistry()
		o.Metrics = system.NewMetrics(o.Registry, "")
	})
	f.Create("emma")
	f.Create("persuasion")
	f.Do("GET", "/books/emma", "").Want(200)
	f.Do("GET", "/books/none", "").Want(404)
	f.Do("GET", "/nowhere", "").Want(404)
	f.Do("BREW", "/nowhere", "").Want(404)
	f.Do("DELETE", "/books", "").Want(405)
	r := f.Do("GET", "/metrics", "").Want(200)
	for _, line := range []string{
		`belfry_http_requests_total{method="POST",route="/books",status="201"} 2`,
		`belfry_http_requests_total{method="GET",route="/books/:uuid",status="200"} 1`,
		`belfry_http_requests_total{method="GET",route="/books/:uuid",status="404"} 1`,
		`belfry_http_requests_total{method="GET",route="unmatched",status="404"} 1`,
		`belfry_http_requests_total{method="other",route="unmatched",status="404"} 1`,
		`belfry_http_requests_total{method="DELETE",route="unmatched",status="405"} 1`,
		`belfry_http_request_duration_seconds_count{method="POST",route="/books"} 2`,
		`belfry_http_requests_in_flight 1`,
	} {
		if !strings.Contains(r.Text, "\n"+line+"\n") {
			t.Errorf("lacks %s in\n%s", line, r.Text)
		}
	}
	if unused := `{method="PUT",route="/books/:uuid"`; strings.Contains(r.Text, unused) {
		t.Errorf("has %s, which nobody requested, in\n%s", unused, r.Text)
	}
}

func TestLog(t *testing.T) {
	f := apitest.Start(t)
	f.Do("POST", "/books?token=SECRET", `{"title":"SECRET"}`, "X-Request-Id", "r1",
		"Authorization", "Bearer SECRET", "Cookie", "belfry=SECRET").Want(201)
	record := f.Logs.Of("r1")
	for name, want := range map[string]any{
		"level": "DEBUG", "method": "POST", "path": "/books", "route": "/books", "status": 201.0,
		"address": "127.0.0.1",
	} {
		if record[name] != want {
			t.Errorf("%s: %v, want %v", name, record[name], want)
		}
	}
	for _, line := range f.Logs.Lines() {
		if strings.Contains(line, "SECRET") {
			t.Errorf("logged: %s", line)
		}
	}
}

// What every start and every stop has is no failure: neither probes nor clients who come meanwhile fill the log with
// errors, among which real ones would drown.
func TestAStartAndAStopAreNoErrors(t *testing.T) {
	var starting, ready error
	f := apitest.Start(t, func(o *api.Options) {
		o.Closed = func() error { return starting }
		o.Ready = func(context.Context) ([]string, error) { return nil, ready }
	})
	n := 0
	want := func(path, says, level string) {
		t.Helper()
		n++
		id := fmt.Sprint("r", n)
		f.Do("GET", path, "", "X-Request-Id", id).Want(503).Says(says)
		if got := f.Logs.Of(id)["level"]; got != level {
			t.Errorf("%s, %s: logged at %v, want %s", path, says, got, level)
		}
	}
	starting = errs.New(errs.Unavailable, "belfry is starting")
	want("/readyz", "not ready: belfry is starting", "DEBUG")
	want("/books/b1", "belfry is starting", "INFO")
	starting, ready = nil, errs.New(errs.Unavailable, "backend default is unavailable")
	want("/readyz", "not ready: backend default is unavailable", "ERROR")
	ready = system.ErrStopping
	want("/readyz", "not ready: belfry is stopping", "DEBUG")
	ready = nil
	f.API.Drain()
	want("/readyz", "belfry is stopping", "DEBUG")
}
