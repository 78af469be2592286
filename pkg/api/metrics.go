package api

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/system"
	"belfry/pkg/httpkit"
)

// NewMetrics returns a Server with the route /metrics alone, for a port of its own. Its
// own requests are not counted.
func NewMetrics(metrics *system.Metrics, hosts *httpkit.Hosts, log *slog.Logger) *Server {
	router := httpkit.NewRouter(httpkit.RouterOptions{
		Registry: prometheus.NewRegistry(), Logger: log, Filters: []httpkit.Filter{hosts.Refuse()},
	})
	system.MountMetrics(router, metrics)
	return &Server{router: router, log: log, stop: func() {}}
}
