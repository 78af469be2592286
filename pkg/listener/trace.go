package listener

import (
	"context"
	"net/http"
)

type traceKey struct{}

// Trace puts the trace of the request that caused an event into the context: a
// handler gets it with TraceParent and sends it on with Propagate.
func Trace() Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) error {
			return next(WithTraceParent(ctx, e.Ctx.Trace), e)
		}
	}
}

// WithTraceParent returns a context that carries a W3C traceparent, for work that a
// handler causes; "" changes nothing.
func WithTraceParent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// TraceParent is the W3C traceparent that a context carries, "" for none.
func TraceParent(ctx context.Context) string {
	trace, _ := ctx.Value(traceKey{}).(string)
	return trace
}

// Propagate sets a context's trace in the header of an outgoing request.
func Propagate(ctx context.Context, header http.Header) {
	if trace := TraceParent(ctx); trace != "" {
		header.Set("Traceparent", trace)
	}
}
