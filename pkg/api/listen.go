package api

import (
	"log/slog"
	"net/http"
	"time"
)

// How long a client may take, and how much it may send as headers.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second // headers and body
	replyTimeout      = 60 * time.Second // reading the reply, beyond the longest wait
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// HTTPServer returns an HTTP server of the front that slow and idle clients
// can't hold: each of them loses its connection after a bounded time. Whoever
// serves it ends it with Shutdown, which drains the front (see Drain).
func (s *Server) HTTPServer() *http.Server {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + s.MaxWait + replyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(s.Drain)
	return server
}
