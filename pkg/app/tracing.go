package app

import (
	"context"
	"log/slog"

	"belfry/config"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/tracing"
)

// traces sends traces where the configuration says.
type traces struct {
	log     *slog.Logger
	current *tracing.Tracer // nil: none
}

// part is the part of a process.
func (t *traces) part() servedPart {
	return servedPart{Name: "tracing", Start: t.start, Reload: t.reload, Stop: func(ctx context.Context) error {
		if t.current == nil {
			return nil
		}
		return t.current.Close(ctx)
	}}
}

func (t *traces) start(ctx context.Context, first *generation) (err error) {
	t.current, err = t.open(ctx, first.config)
	first.tracer = t.current
	return err
}

func (t *traces) reload(ctx context.Context, before, next *generation) (part.Change, error) {
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
