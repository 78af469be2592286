package app

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/api/system"
	"belfry/pkg/listener"
	listenertracing "belfry/pkg/listener/tracing"
)

// traced makes a span of each request, if there is tracing.
func (g *generation) traced(next http.Handler) http.Handler {
	if g.tracer == nil {
		return next
	}
	return g.tracer.Handler(next, append(system.ProbePaths(), "/metrics")...)
}

// traceEvents makes a span of each attempt of a listener, if there is tracing. What the attempt causes is a part of it.
func (g *generation) traceEvents(s *listener.Spec) {
	if g.tracer != nil {
		s.Middleware = append([]listener.Middleware{listenertracing.Middleware(g.tracer.Provider(), s.Name), caused}, s.Middleware...)
	}
}

// caused replaces the trace of an event, which is that of the span of the request, by that of the attempt.
func caused(next listener.Handler) listener.Handler {
	return func(ctx context.Context, e *listener.Event) error {
		attempted := *e
		attempted.Ctx.Trace = listener.TraceParent(ctx)
		return next(ctx, &attempted)
	}
}

// spans returns what makes the spans of operations over the bus; nil for none.
func (g *generation) spans() trace.TracerProvider {
	if g.tracer == nil {
		return nil
	}
	return g.tracer.Provider()
}
