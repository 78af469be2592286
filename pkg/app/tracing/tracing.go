// Package tracing sends traces to a receiver of the OpenTelemetry Protocol over HTTP.
package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"belfry/pkg/errs"
)

// Limits of the memory of spans: while the receiver is slow, queued spans wait in it, and further ones are dropped.
const (
	maxQueued    = 2048
	maxValue     = 256 // bytes of the text of an attribute
	maxOfEach    = 32  // attributes, events and links of a span
	exportAtOnce = 512
)

// maxError is how many bytes of an error are logged: it can have the page with which a proxy replies.
const maxError = 500

// closeTimeout limits how long a stop sends the last spans to a receiver that may be unavailable.
const closeTimeout = 2 * time.Second

// Options configure a Tracer.
type Options struct {
	Endpoint string  // URL of the receiver
	Ratio    float64 // of the traces that are sent
	Service  string
	Version  string
	Logger   *slog.Logger

	RootCAs *x509.CertPool // nil: those of the system
}

// Tracer makes spans and sends them in the background. While the receiver is unavailable, spans are dropped: nothing
// waits for it.
type Tracer struct{ provider *sdk.TracerProvider }

// Start starts a tracer. Only the id of a trace decides whether it is sent, so that all processes make the same
// decision. The client's sampling flag is ignored. The library's own reports go to the logger of the latest tracer,
// because the library has one logger for the process.
func Start(ctx context.Context, o Options) (*Tracer, error) {
	otel.SetLogger(logr.FromSlogHandler(o.Logger.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		o.Logger.Warn("the library for traces reports an error", "error", short(err))
	}))
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(o.Endpoint)}
	// The library refuses them for http.
	if o.RootCAs != nil && strings.HasPrefix(strings.ToLower(o.Endpoint), "https:") {
		options = append(options,
			otlptracehttp.WithTLSClientConfig(&tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "traces can't be sent to tracing.endpoint")
	}
	about := resource.NewSchemaless(attribute.String("service.name", o.Service),
		attribute.String("service.version", o.Version))
	return &Tracer{sdk.NewTracerProvider(
		sdk.WithResource(about), sdk.WithSampler(sdk.TraceIDRatioBased(o.Ratio)),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: maxValue, AttributeCountLimit: maxOfEach, EventCountLimit: maxOfEach,
			LinkCountLimit:              maxOfEach,
			AttributePerEventCountLimit: maxOfEach, AttributePerLinkCountLimit: maxOfEach,
		}),
		sdk.WithBatcher(&reporting{SpanExporter: exporter, log: o.Logger}, sdk.WithMaxQueueSize(maxQueued),
			sdk.WithMaxExportBatchSize(exportAtOnce)),
	)}, nil
}

// Provider returns the provider of spans.
func (t *Tracer) Provider() trace.TracerProvider { return t.provider }

// Handler makes a span of each request, except to some paths. It is a part of the trace that the client names.
//
// The library copies the properties of a request to attributes: its path, the client's address and program, the host
// that it names. These can be secret or personal, so the library gets a request without them.
func (t *Tracer) Handler(next http.Handler, without ...string) http.Handler {
	traced := otelhttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, bare *http.Request) {
		r := bare.Context().Value(requestKey{}).(*http.Request)
		next.ServeHTTP(w, r.WithContext(bare.Context()))
	}), "request",
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithPropagators(propagation.TraceContext{}),
	)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(without, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		traced.ServeHTTP(w, bare(r))
	})
}

// requestKey is the key of the request that clients sent.
type requestKey struct{}

// bare returns a request with only the protocol, the method if it is a standard one, and the trace of another.
func bare(r *http.Request) *http.Request {
	b := &http.Request{
		Method: r.Method, URL: &url.URL{}, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		TLS: r.TLS, Header: http.Header{}, Body: http.NoBody,
	}
	if !slices.Contains(methods, b.Method) {
		b.Method = "_OTHER" // the name in the conventions of OpenTelemetry
	}
	if trace := r.Header.Get("Traceparent"); trace != "" {
		b.Header.Set("Traceparent", trace)
	}
	return b.WithContext(context.WithValue(r.Context(), requestKey{}, r))
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions,
}

// Close sends the spans that have ended.
func (t *Tracer) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // spans that can't be sent are dropped, as before
	return nil
}

// reporting logs once when the receiver does not accept all spans, and once when it does again.
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
		r.log.Info("the receiver accepts all traces again")
	case err != nil && !r.failed.Swap(true):
		r.log.Warn("the receiver of traces is unavailable, or reports a problem; traces that it does not accept "+
			"are dropped", "error", short(err))
	}
	return nil
}

// short returns the beginning of the text of an error.
func short(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}
