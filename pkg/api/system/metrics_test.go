package system_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/system"
	"belfry/pkg/httpkit"
)

const token = "a-token-for-metrics"

func TestMetricsAreNotOnThePublicPort(t *testing.T) {
	f := apitest.Start(t)
	for _, method := range []string{"GET", "HEAD", "POST"} {
		f.Do(method, "/metrics", "").Want(404)
	}
	f.Do("GET", "/metrics", "").Says("metrics.listen").Says("metrics.token")
}

func TestMetricsOnThePublicPortNeedTheToken(t *testing.T) {
	f := apitest.Start(t, func(o *api.Options) {
		o.Registry = prometheus.NewRegistry()
		o.Metrics = system.NewMetrics(o.Registry, token)
	})
	for _, wrong := range []string{"", "Bearer", "Bearer ", token, "Basic " + token, "Bearer " + token + "x",
		"Bearer " + token[1:], "Bearer wrong"} {
		challenge := "Bearer"
		if strings.HasPrefix(wrong, "Bearer ") && wrong != "Bearer " {
			challenge = `Bearer error="invalid_token"`
		}
		r := f.Do("GET", "/metrics", "", "Authorization", wrong).Want(401).HasHeader("Www-Authenticate",
			challenge).Says("metrics.token")
		if strings.Contains(r.Text, token) || strings.Contains(r.Text, "go_") {
			t.Errorf("%q: %s", wrong, r.Text)
		}
	}
	f.Do("GET", "/metrics", "", "Authorization", "bearer "+token).Want(200)
}

func TestThePortOfTheMetricsServesNothingElse(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := api.NewMetrics(system.NewMetrics(registry, ""), httpkit.NewHosts(""), slog.New(slog.DiscardHandler))
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/readyz": 404, "/books": 404, "/metrics/": 404} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	w := httptest.NewRecorder()
	if s.ServeHTTP(w,
		httptest.NewRequest(http.MethodGet, "http://evil.example/metrics",
			nil)); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("for another host: %d", w.Code)
	}
}
