package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api"
	"belfry/pkg/errs"
)

func TestHealth(t *testing.T) {
	var trouble error
	f := start(t, func(o *api.Options) { o.Ready = func(context.Context) error { return trouble } })
	for _, method := range []string{"GET", "HEAD"} {
		trouble = nil
		f.do(method, "/healthz", "").want(200).header("Cache-Control", "no-store")
		f.do(method, "/readyz", "").want(200).header("Cache-Control", "no-store")
		trouble = errs.Wrap(errors.New("SECRET"), errs.Unavailable, "the bus is away")
		f.do(method, "/healthz", "").want(200)
		f.do(method, "/readyz", "").want(503).header("Retry-After", "1")
	}
	f.do("GET", "/readyz", "", "X-Request-Id", "r1").want(503).says("the bus is away")
	if record := f.log.of("r1"); record["error"] != "not ready: the bus is away: SECRET" {
		t.Errorf("logged: %v", record)
	}
	trouble = errors.New("SECRET")
	if r := f.do("GET", "/readyz", "").want(503); strings.Contains(r.body, "SECRET") {
		t.Errorf("told: %s", r.body)
	}
	start(t).do("GET", "/readyz", "").want(200)
}

// Requests are counted by the route's template: neither a uuid, nor a path
// nor a method of a client's invention makes a time series.
func TestMetrics(t *testing.T) {
	f := start(t, func(o *api.Options) { o.Registry = prometheus.NewPedanticRegistry() })
	f.create("emma")
	f.create("persuasion")
	f.do("GET", "/books/emma", "").want(200)
	f.do("GET", "/books/none", "").want(404)
	f.do("GET", "/nowhere", "").want(404)
	f.do("BREW", "/nowhere", "").want(404)
	f.do("DELETE", "/books", "").want(405)
	r := f.do("GET", "/metrics", "").want(200)
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
		if !strings.Contains(r.body, "\n"+line+"\n") {
			t.Errorf("lacks %s in\n%s", line, r.body)
		}
	}
}

func TestLog(t *testing.T) {
	f := start(t)
	f.do("POST", "/books?token=SECRET", `{"title":"SECRET"}`, "X-Request-Id", "r1",
		"Authorization", "Bearer SECRET", "Cookie", "belfry=SECRET").want(201)
	record := f.log.of("r1")
	for name, want := range map[string]any{
		"level": "DEBUG", "method": "POST", "path": "/books", "route": "/books", "status": 201.0, "address": "127.0.0.1",
	} {
		if record[name] != want {
			t.Errorf("%s: %v, want %v", name, record[name], want)
		}
	}
	for _, line := range f.log.lines() {
		if strings.Contains(line, "SECRET") {
			t.Errorf("logged: %s", line)
		}
	}
}
