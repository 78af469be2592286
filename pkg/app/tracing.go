package app

import (
	"context"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"belfry/config"
	"belfry/pkg/api/system"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/tracing"
	"belfry/pkg/listener"
	listenertracing "belfry/pkg/listener/tracing"
)

// traces sends traces where the configuration says.
type traces struct {
	log     *slog.Logger
	current *tracing.Tracer // nil: none
}

func (t *traces) part() part.Part[*serving] {
	return part.Part[*serving]{Name: "tracing", Start: t.start, Reload: t.reload, Stop: func(ctx context.Context) error {
		if t.current == nil {
			return nil
		}
		return t.current.Close(ctx)
	}}
}

func (t *traces) start(ctx context.Context, first *serving) (err error) {
	t.current, err = t.open(ctx, first.config)
	first.tracer = t.current
	return err
}

func (t *traces) reload(ctx context.Context, before, next *serving) (part.Change, error) {
	if before.config.Tracing == next.config.Tracing {
		next.tracer = before.tracer
		return part.Change{}, nil
	}
	opened, err := t.open(ctx, next.config)
	if err != nil {
		return part.Change{}, err
	}
	next.tracer = opened
	return part.Change{
		Apply:  func() { t.current = opened },
		Cancel: func() { closeTracer(ctx, opened) },
		Retire: func(ctx context.Context) { closeTracer(ctx, before.tracer) },
	}, nil
}

func closeTracer(ctx context.Context, t *tracing.Tracer) {
	if t != nil {
		_ = t.Close(ctx) // spans that can't be sent are lost, as at a stop
	}
}

// open starts a tracer; nil where none is configured.
func (t *traces) open(ctx context.Context, c *config.Config) (*tracing.Tracer, error) {
	if c.Tracing.Endpoint == "" {
		return nil, nil
	}
	roots, err := certificate.Trusted(c.Tracing.CA)
	if err != nil {
		return nil, err
	}
	return tracing.Start(ctx, tracing.Options{
		Endpoint: c.Tracing.Endpoint, Ratio: c.Tracing.Ratio, Service: c.Tracing.Service, Version: plan.Version(), Logger: t.log, RootCAs: roots,
	})
}

// traced makes a span of each request, if there is tracing.
func (g *serving) traced(next http.Handler) http.Handler {
	if g.tracer == nil {
		return next
	}
	return g.tracer.Handler(next, append(system.ProbePaths(), "/metrics")...)
}

// traceEvents makes a span of each attempt of a listener, if there is tracing. What the attempt causes is a part of it.
func (g *serving) traceEvents(s *listener.Spec) {
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
func (g *serving) spans() trace.TracerProvider {
	if g.tracer == nil {
		return nil
	}
	return g.tracer.Provider()
}
