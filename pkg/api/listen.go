package api

import (
	"log/slog"
	"net/http"
	"time"
)

// Timeouts and limits of a connection.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 60 * time.Second // headers and body
	replyTimeout      = 60 * time.Second // reading the reply, beyond the longest wait
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// HTTPServer returns an http.Server whose timeouts close the connections of slow
// and idle clients. Its Shutdown calls Drain.
func (s *Server) HTTPServer() *http.Server {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + s.maxWait + replyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(s.Drain)
	return server
}
