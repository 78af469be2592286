package natsapi

import (
	"context"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/problem"
	"belfry/pkg/wire"
)

// startSpan makes the span of a request, in the trace that its header names. Without tracing it is nil.
func (v *service) startSpan(ctx context.Context, e *endpoint, m *nats.Msg) (context.Context, trace.Span) {
	if v.server.tracer == nil {
		return ctx, nil
	}
	given, _ := header(m.Header, wire.HeaderTrace) // an invalid one is a problem of the request
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": given})
	return v.server.tracer.Start(ctx, e.stats.Subject, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("messaging.system", "nats"), attribute.String("belfry.store", v.store.Name()),
		attribute.String("belfry.operation", e.of.Op),
	))
}

// endSpan ends the span of a request. Neither its id, which the client may have chosen, nor the text of an error is
// sent: both can have anything.
func endSpan(span trace.Span, err error, o reply) {
	if span == nil {
		return
	}
	status := max(o.status, 200)
	if err != nil {
		status = problem.Of(errs.KindOf(err)).Status
	}
	span.SetAttributes(attribute.Int("belfry.status", status))
	if status >= 500 {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// traceOf returns the trace for the effects of a request: that of its span, or else that of its header.
func traceOf(ctx context.Context, given string) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return event.TraceParent(given)
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}
