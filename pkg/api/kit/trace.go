package kit

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/event"
)

// traceParent returns the W3C trace context for the effects of the request: that of its span, or else that of the
// client; "" for none.
func traceParent(x *Exchange) string {
	ctx := x.Request.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return event.TraceParent(x.Request.Header.Get("Traceparent"))
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// nameSpan names the span of the request after its route. The path itself can have an address or another name of a
// person, and is not sent; nor is an id that the client has chosen, which can be anything.
func (x *Exchange) nameSpan(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetName(x.route.method + " " + x.route.template)
	span.SetAttributes(
		attribute.String("http.route", x.route.template), attribute.String("url.path", x.route.template),
	)
	if len(x.Request.Header["X-Request-Id"]) == 0 {
		span.SetAttributes(attribute.String("belfry.request", x.ID))
	}
}
