package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"belfry/pkg/errs"
)

// slow is when a request is worth a line in the log of its own.
const slow = time.Second

// maxLoggedPath bounds a path in the log, in bytes.
const maxLoggedPath = 256

// observe counts a request and logs it: at error when the fault is on this
// side, at info when it was slow, else at debug. Bodies, queries and
// credentials are never logged.
func (s *Server) observe(ctx context.Context, x *exchange, took time.Duration) {
	if x.status == 0 {
		x.status = unwritten(x)
	}
	x.route.count(x.status, took)
	level := slog.LevelDebug
	switch {
	case x.status >= http.StatusInternalServerError || x.aborted:
		level = slog.LevelError
	case took > slow && !x.lasting:
		level = slog.LevelInfo
	}
	if !s.Logger.Enabled(ctx, level) {
		return
	}
	s.Logger.LogAttrs(ctx, level, "request", x.attributes(took)...)
}

// unwritten is the status to count where a handler wrote none: net/http sends
// an empty 200, unless the connection is cut.
func unwritten(x *exchange) int {
	if x.aborted {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func (x *exchange) attributes(took time.Duration) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("request", x.id),
		slog.String("method", x.req.Method),
		slog.String("path", cut(x.req.URL.Path, maxLoggedPath)),
		slog.String("route", x.route.template),
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Duration("took", took),
		slog.String("address", x.address),
	}
	return append(attrs, errs.Attributes(x.err)...)
}
