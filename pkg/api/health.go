package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"belfry/pkg/errs"
)

// readyWithin is how long the check of readiness may take.
const readyWithin = 5 * time.Second

func aboutHealth(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/metrics"
}

func (s *Server) mountHealth() {
	s.handleGet("/healthz", s.healthz)
	s.handleGet("/readyz", s.readyz)
	metrics := promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{})
	s.handleGet("/metrics", func(x *exchange) error {
		metrics.ServeHTTP(x, x.req)
		return nil
	})
}

// healthz says that the process is alive, and nothing about what it needs:
// restarting it would not help those.
func (s *Server) healthz(x *exchange) error {
	x.ok()
	return nil
}

// readyz says whether requests can be served now.
func (s *Server) readyz(x *exchange) error {
	if s.stopping.Err() != nil {
		return errs.New(errs.Unavailable, "shutting down")
	}
	if s.Ready != nil {
		ctx, cancel := context.WithTimeout(x.req.Context(), readyWithin)
		defer cancel()
		if err := s.Ready(ctx); err != nil {
			return notReady(err)
		}
	}
	x.ok()
	return nil
}

// notReady names what is missing as far as the error has words for a client.
func notReady(err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Kind != errs.Internal && e.Message != "" {
		return &errs.Error{Kind: errs.Unavailable, Message: "not ready: " + e.Message, Err: e.Err}
	}
	return errs.Wrap(err, errs.Unavailable, "not ready")
}

func (x *exchange) ok() {
	x.set("Cache-Control", noStore)
	x.send(http.StatusOK, jsonType, []byte(`{"status":"ok"}`+"\n"))
}
