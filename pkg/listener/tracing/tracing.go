// Package tracing makes OpenTelemetry spans of a listener's attempts. It is apart from package listener so that a
// listener without traces contains nothing for them, and it uses only the API of OpenTelemetry: where spans are sent is
// the program's choice.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/listener"
)

// Middleware makes a span of each attempt at an event, in the trace of the request that caused the event. The span has
// the names of the listener, of the event and of the store, the event's id and the number of the attempt, and nothing
// of the object. It is in the context of the handler, for clients that are instrumented and for listener.TraceParent.
func Middleware(provider trace.TracerProvider, name string) listener.Middleware {
	tracer := provider.Tracer("belfry/pkg/listener/tracing")
	return func(next listener.Handler) listener.Handler {
		return func(ctx context.Context, e *listener.Event) error {
			parent := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": e.Ctx.Trace})
			ctx, span := tracer.Start(parent, name+" "+string(e.Event), trace.WithSpanKind(trace.SpanKindConsumer),
				trace.WithAttributes(
					attribute.String("messaging.system", "nats"),
					attribute.String("messaging.operation.type", "process"),
					attribute.String("messaging.message.id", e.ID),
					attribute.String("belfry.listener", name),
					attribute.String("belfry.store", e.Store),
					attribute.String("belfry.origin", e.Origin),
					attribute.Int("belfry.attempt", e.Attempt),
				))
			defer span.End()
			carrier := propagation.MapCarrier{}
			propagation.TraceContext{}.Inject(ctx, carrier)
			err := next(listener.WithTraceParent(ctx, carrier["traceparent"]), e)
			if err != nil { // its text can have contents of objects
				span.SetStatus(codes.Error, "the attempt has failed; the log of the listener has the reason")
			}
			return err
		}
	}
}
