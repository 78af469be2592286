package api

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/kit"
	"belfry/pkg/api/system"
)

// NewMetrics returns a Server with the route /metrics alone, for a port of its own. Its
// own requests are not counted.
func NewMetrics(metrics *system.Metrics, hosts *kit.Hosts, log *slog.Logger) *Server {
	router := kit.NewRouter(kit.RouterOptions{
		Registry: prometheus.NewRegistry(), Logger: log, Filters: []kit.Filter{hosts.Refuse()},
	})
	system.MountMetrics(router, metrics)
	return &Server{router: router, log: log, stop: func() {}}
}
