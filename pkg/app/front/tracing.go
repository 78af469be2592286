package front

import (
	"context"
	"log/slog"

	"belfry/config"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/app/tracing"
)

// Traces sends traces to the configured receiver.
type Traces struct {
	Log     *slog.Logger
	current *tracing.Tracer // nil: none
}

// Part returns the functions that start, reload and stop it.
func (t *Traces) Part() serving.Part {
	return serving.Part{Name: "tracing", Start: t.start, Reload: t.reload, Stop: func(ctx context.Context) error {
		if t.current == nil {
			return nil
		}
		return t.current.Close(ctx)
	}}
}

func (t *Traces) start(ctx context.Context, first *serving.Generation) (err error) {
	t.current, err = t.Open(ctx, first.Config)
	first.Tracer = t.current
	return err
}

func (t *Traces) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
	if before.Config.Tracing == next.Config.Tracing {
		next.Tracer = before.Tracer
		return part.Change{}, nil
	}
	opened, err := t.Open(ctx, next.Config)
	if err != nil {
		return part.Change{}, err
	}
	next.Tracer = opened
	return part.Change{
		Apply:  func() { t.current = opened },
		Cancel: func() { closeTracer(ctx, opened) },
		Retire: func(ctx context.Context) { closeTracer(ctx, before.Tracer) },
	}, nil
}

func closeTracer(ctx context.Context, t *tracing.Tracer) {
	if t != nil {
		_ = t.Close(ctx) // spans that can't be sent are lost, as at a stop
	}
}

// Open starts a tracer; nil if no receiver is configured.
func (t *Traces) Open(ctx context.Context, c *config.Config) (*tracing.Tracer, error) {
	if c.Tracing.Endpoint == "" {
		return nil, nil
	}
	roots, err := certificate.Trusted(c.Tracing.CA)
	if err != nil {
		return nil, err
	}
	return tracing.Start(ctx, tracing.Options{
		Endpoint: c.Tracing.Endpoint, Ratio: c.Tracing.Ratio, Service: c.Tracing.Service, Version: plan.Version(),
		Logger: t.Log, RootCAs: roots,
	})
}
