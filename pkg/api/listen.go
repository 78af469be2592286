package api

import (
	"bytes"
	"context"
	"log"
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
		ErrorLog:          log.New(connectionLog{s.log}, "", 0),
	}
	server.RegisterOnShutdown(s.Drain)
	return server
}

// RedirectServer returns an http.Server for requests that are small and replied to at once.
func RedirectServer(h http.Handler, l *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout,
		WriteTimeout: readHeaderTimeout, IdleTimeout: readHeaderTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: log.New(connectionLog{l}, "", 0),
	}
}

// connectionLog logs the messages of http.Server about connections. Network scanners fail at the TLS handshake, or do
// not begin it; such messages have the level debug.
type connectionLog struct{ log *slog.Logger }

// Write implements io.Writer. It receives one line.
func (c connectionLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.Contains(line, []byte("TLS handshake error")) {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, string(bytes.TrimSpace(line)))
	return len(line), nil
}
