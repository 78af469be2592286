package tracing

import (
	"io"
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope names belfry as the source of the spans of requests.
const scope = "belfry/pkg/app/tracing"

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodOptions,
}

// Handler makes a span of each request, except to some paths. It is a part of the trace that the client names.
//
// The names of its attributes are those of OpenTelemetry's conventions. otelhttp would make the same spans, but also
// copies the path, the client's address and program, and the host that it names. These can be secret or personal.
func (t *Tracer) Handler(next http.Handler, without ...string) http.Handler {
	tracer := t.provider.Tracer(scope)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(without, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		of := propagation.TraceContext{}.Extract(r.Context(),
			propagation.MapCarrier{"traceparent": r.Header.Get("Traceparent")})
		ctx, span := tracer.Start(of, "request", trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(requestAttributes(r)...))
		defer span.End()
		reply := &response{ResponseWriter: w}
		next.ServeHTTP(reply, r.WithContext(ctx))
		status := reply.statusSent()
		span.SetAttributes(attribute.Int("http.response.status_code", status),
			attribute.Int64("http.response.body.size", reply.size))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	})
}

// requestAttributes are the properties of a request that a span has.
func requestAttributes(r *http.Request) []attribute.KeyValue {
	method, scheme, version := r.Method, "http", strconv.Itoa(r.ProtoMajor)
	if !slices.Contains(methods, method) {
		method = "_OTHER" // the name in the conventions of OpenTelemetry
	}
	if r.TLS != nil {
		scheme = "https"
	}
	if r.ProtoMajor == 1 {
		version += "." + strconv.Itoa(r.ProtoMinor)
	}
	return []attribute.KeyValue{attribute.String("http.request.method", method), attribute.String("url.scheme", scheme),
		attribute.String("network.protocol.version", version)}
}

// response notes the status and the size of a reply.
type response struct {
	http.ResponseWriter
	status int // 0: not sent yet
	size   int64
}

// statusSent is the status of the reply, also if only its body or nothing was written.
func (r *response) statusSent() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// WriteHeader implements http.ResponseWriter. A status below 200 announces another one, but for 101.
func (r *response) WriteHeader(status int) {
	if r.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	r.status = r.statusSent()
	n, err := r.ResponseWriter.Write(p)
	r.size += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom, so that the operating system can send a file.
func (r *response) ReadFrom(from io.Reader) (int64, error) {
	r.status = r.statusSent()
	n, err := io.Copy(r.ResponseWriter, from)
	r.size += n
	return n, err
}

// Unwrap returns the writer for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
