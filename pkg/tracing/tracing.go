// Package tracing sends traces to a receiver of the OpenTelemetry Protocol over HTTP.
package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/errs"
)

// closeTimeout limits how long a stop sends the last spans to a receiver that may be unavailable.
const closeTimeout = 2 * time.Second

// Options configure a Tracer.
type Options struct {
	Endpoint string  // URL of the receiver
	Ratio    float64 // of the traces that are sent
	Service  string
	Version  string
	Logger   *slog.Logger
}

// Tracer makes spans and sends them in the background. While the receiver is unavailable, spans are dropped: nothing
// waits for it.
type Tracer struct{ provider *sdk.TracerProvider }

// Start starts a tracer. Whether a trace is sent depends on its id alone, so that all processes decide alike; what the
// client wants does not count.
func Start(ctx context.Context, o Options) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint))
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "traces can't be sent to tracing.endpoint")
	}
	about := resource.NewSchemaless(attribute.String("service.name", o.Service), attribute.String("service.version", o.Version))
	return &Tracer{sdk.NewTracerProvider(
		sdk.WithResource(about), sdk.WithSampler(sdk.TraceIDRatioBased(o.Ratio)),
		sdk.WithBatcher(&reporting{SpanExporter: exporter, log: o.Logger}),
	)}, nil
}

// Provider returns what makes the spans.
func (t *Tracer) Provider() trace.TracerProvider { return t.provider }

// Handler makes a span of each request, but for those to some paths. It is a part of the trace that the client names.
func (t *Tracer) Handler(next http.Handler, without ...string) http.Handler {
	return otelhttp.NewHandler(next, "request",
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return !slices.Contains(without, r.URL.Path) }),
	)
}

// Close sends the spans that have ended.
func (t *Tracer) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what can't be sent is dropped, as before
	return nil
}

// reporting logs when spans can't be sent, once until they can be again.
type reporting struct {
	sdk.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans implements sdk.SpanExporter.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil && r.failed.Swap(false):
		r.log.Info("traces can be sent again")
	case err != nil && !r.failed.Swap(true):
		r.log.Warn("traces can't be sent, and are dropped", "error", err)
	}
	return nil
}
