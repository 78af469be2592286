package app

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/api/system"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/tracing"
	"belfry/pkg/listener"
	listenertracing "belfry/pkg/listener/tracing"
)

// startTracing sends traces where the configuration says.
func (a *serving) startTracing(ctx context.Context) error {
	t := a.config.Tracing
	roots, err := certificate.Trusted(t.CA)
	if err != nil {
		return err
	}
	tracer, err := tracing.Start(ctx, tracing.Options{Endpoint: t.Endpoint, Ratio: t.Ratio, Service: t.Service, Version: plan.Version(), Logger: a.log, RootCAs: roots})
	if err != nil {
		return err
	}
	a.tracer = tracer
	a.onStop("tracing", tracer.Close)
	return nil
}

// traceRequests makes a span of each request, if there is tracing.
func (a *App) traceRequests() {
	if a.tracer != nil {
		a.front.server.Handler = a.tracer.Handler(a, append(system.ProbePaths(), "/metrics")...)
	}
}

// traceEvents makes a span of each attempt of a listener, if there is tracing. What the attempt causes is a part of it.
func (a *App) traceEvents(s *listener.Spec) {
	if a.tracer != nil {
		s.Middleware = append([]listener.Middleware{listenertracing.Middleware(a.tracer.Provider(), s.Name), caused}, s.Middleware...)
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
func (a *App) spans() trace.TracerProvider {
	if a.tracer == nil {
		return nil
	}
	return a.tracer.Provider()
}
