package httpkit

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// slowRequest is the duration from which a request is logged at info.
const slowRequest = time.Second

// maxLoggedPath bounds a path in the log, in bytes.
const maxLoggedPath = 256

// observe counts a request and logs it: at error when the server failed (but see LogFailureAt), at info
// when it was slow, else at debug. Bodies, queries and credentials are never
// logged.
func (r *Router) observe(ctx context.Context, x *Exchange, took time.Duration) {
	if x.status == 0 {
		x.status = implicitStatus(x)
	}
	x.route.count(x.status, took)
	x.nameSpan(ctx)
	level := slog.LevelDebug
	switch {
	case x.status >= http.StatusInternalServerError || x.aborted:
		level = x.failureLevel
	case took > slowRequest && !x.stream:
		level = slog.LevelInfo
	}
	if !r.log.Enabled(ctx, level) {
		return
	}
	r.log.LogAttrs(ctx, level, "request", x.attributes(took)...)
}

// implicitStatus returns the status to count when a handler wrote none: net/http
// sends an empty 200, unless the connection is cut.
func implicitStatus(x *Exchange) int {
	if x.aborted {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func (x *Exchange) attributes(took time.Duration) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("request", x.ID),
		slog.String("method", x.Request.Method),
		slog.String("path", Truncate(x.Request.URL.Path, maxLoggedPath)),
		slog.String("route", x.route.template),
		slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes),
		slog.Duration("took", took),
		slog.String("address", x.Address),
	}
	if x.session != nil {
		attrs = append(attrs, slog.String("actor", x.session.User.UUID))
	}
	if trace := traceParent(x); trace != "" {
		attrs = append(attrs, slog.String("trace", trace))
	}
	return append(attrs, errs.Attributes(x.err)...)
}

// traceParent returns the W3C trace context for the effects of the request: that of its span, or else that of the
// client; "" for none.
func traceParent(x *Exchange) string {
	ctx := x.Request.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return event.TraceParent(x.Request.Header.Get("Traceparent"))
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// nameSpan names the span of the request after its route. The path itself can have an address or another name of a
// person, and is not sent; nor is an id that the client has chosen, which can be anything.
func (x *Exchange) nameSpan(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetName(x.route.method + " " + x.route.template)
	span.SetAttributes(
		attribute.String("http.route", x.route.template), attribute.String("url.path", x.route.template),
	)
	if len(x.Request.Header["X-Request-Id"]) == 0 {
		span.SetAttributes(attribute.String("belfry.request", x.ID))
	}
}
