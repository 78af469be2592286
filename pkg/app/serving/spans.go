package serving

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/api/system"
	"belfry/pkg/listener"
	listenertracing "belfry/pkg/listener/tracing"
)

// Traced makes a span of each request, if there is tracing.
func (g *Generation) Traced(next http.Handler) http.Handler {
	if g.Tracer == nil {
		return next
	}
	return g.Tracer.Handler(next, append(system.ProbePaths(), "/metrics")...)
}

// TraceEvents makes a span of each attempt of a listener, if tracing is enabled. The effects of the
// attempt belong to its span.
func (g *Generation) TraceEvents(s *listener.Spec) {
	if g.Tracer != nil {
		s.Middleware = append([]listener.Middleware{listenertracing.Middleware(g.Tracer.Provider(), s.Name), caused},
			s.Middleware...)
	}
}

// caused replaces the trace of an event, which names the span of the request, by the trace of the attempt.
func caused(next listener.Handler) listener.Handler {
	return func(ctx context.Context, e *listener.Event) error {
		attempted := *e
		attempted.Ctx.Trace = listener.TraceParent(ctx)
		return next(ctx, &attempted)
	}
}

// Spans returns the function that makes the spans of operations over the bus; nil for none.
func (g *Generation) Spans() trace.TracerProvider {
	if g.Tracer == nil {
		return nil
	}
	return g.Tracer.Provider()
}
