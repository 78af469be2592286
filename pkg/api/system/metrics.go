package system

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

const metricsPath = "/metrics"

// Metrics serve a registry. They count objects and logins, so they are not public.
type Metrics struct {
	handler http.Handler
	token   string // "": none is needed
}

// NewMetrics returns the Metrics of registries. Clients need the token, unless it is "".
func NewMetrics(registry prometheus.Gatherer, token string) *Metrics {
	return &Metrics{promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), token}
}

// MountMetrics adds /metrics.
func MountMetrics(r *httpkit.Router, m *Metrics) { r.HandleGet(metricsPath, m.serve) }

func (m *Metrics) serve(x *httpkit.Exchange) error {
	if m.token != "" {
		token, ok := x.BearerToken()
		given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(m.token))
		if !ok || subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
			return errs.Wrap(sessions.ErrInvalidToken, errs.Unauthenticated,
				"metrics need the header Authorization: Bearer with metrics.token of the configuration")
		}
	}
	m.handler.ServeHTTP(x, x.Request)
	return nil
}

// NoMetrics is the Filter of a port without metrics. Its error says how to configure them.
func NoMetrics(x *httpkit.Exchange) error {
	if x.Request.URL.Path == metricsPath {
		return errs.New(errs.NotFound, "metrics are not served here: metrics.listen of the configuration gives them "+
			"a port of their own, metrics.token a token for this one")
	}
	return nil
}
