package listener

import (
	"context"
	"net/http"
)

type traceKey struct{}

// Trace carries the trace of the request that caused an event on: a handler
// finds it with TraceParent, and gives it to whom it calls.
func Trace() Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) error {
			if e.Ctx.Trace != "" {
				ctx = context.WithValue(ctx, traceKey{}, e.Ctx.Trace)
			}
			return next(ctx, e)
		}
	}
}

// TraceParent is the W3C traceparent that a context carries, "" for none.
func TraceParent(ctx context.Context) string {
	trace, _ := ctx.Value(traceKey{}).(string)
	return trace
}

// Propagate gives a context's trace to a request.
func Propagate(ctx context.Context, header http.Header) {
	if trace := TraceParent(ctx); trace != "" {
		header.Set("Traceparent", trace)
	}
}
