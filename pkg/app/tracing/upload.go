package tracing

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

const (
	protobuf = "application/x-protobuf"

	attemptTimeout = 10 * time.Second // of one request
	uploadTimeout  = time.Minute      // of a request with its retries
	retryMin       = 5 * time.Second
	retryMax       = 30 * time.Second

	maxReply = 64 << 10 // bytes of a reply that are read
)

// uploader sends spans by OTLP over HTTP: each batch is one POST, which is repeated if the receiver asks for that.
// OpenTelemetry's exporter for HTTP does the same, but its packages import gRPC, which made the program larger by
// a megabyte and each first build longer.
type uploader struct {
	client  *http.Client
	url     string
	headers http.Header

	running context.Context // until the stop
	stop    context.CancelFunc
}

var _ otlptrace.Client = (*uploader)(nil)

// newUploader returns an uploader to an endpoint. Without a path, it is that of OTLP.
func newUploader(o Options) (*uploader, error) {
	at, err := url.Parse(o.Endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("it is no URL with http or https")
	}
	to := url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/v1/traces"}
	if at.Path != "" {
		to.Path = path.Clean("/" + at.Path)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.RootCAs != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}
	}
	u := &uploader{client: &http.Client{Transport: transport, Timeout: attemptTimeout}, url: to.String(),
		headers: http.Header{}}
	u.headers.Set("User-Agent", "belfry/"+o.Version)
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if err := addHeaders(u.headers, os.Getenv(name)); err != nil {
			o.Logger.Warn("a header for the receiver of traces is left out", "variable", name, "error", err)
		}
	}
	u.headers.Set("Content-Type", protobuf)
	u.running, u.stop = context.WithCancel(context.Background())
	return u, nil
}

// addHeaders adds the headers of a variable: name=value, separated by commas, with values that are escaped as in URLs.
// Its error does not have the values, which can be secret.
func addHeaders(to http.Header, list string) (err error) {
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		value, unescaped := url.PathUnescape(value)
		if name = strings.TrimSpace(name); !found || name == "" || unescaped != nil {
			err = errors.New("expected name=value, separated by commas")
			continue
		}
		to.Set(name, strings.TrimSpace(value))
	}
	return err
}

// Start implements otlptrace.Client.
func (u *uploader) Start(ctx context.Context) error { return ctx.Err() }

// Stop implements otlptrace.Client. It ends the requests in flight.
func (u *uploader) Stop(context.Context) error {
	u.stop()
	u.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (u *uploader) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans}) // a request has the same fields
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	defer context.AfterFunc(u.running, cancel)()
	for delays := backoff.New(retryMin, retryMax); ; {
		again, err := u.post(ctx, body)
		if !again || delays.Wait(ctx) != nil {
			return err
		}
	}
}

// post sends a batch once. It reports whether the receiver may accept it later.
func (u *uploader) post(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header = u.headers.Clone()
	res, err := u.client.Do(r)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		again = res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusBadGateway ||
			res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusGatewayTimeout
		return again, errs.New(errs.Unavailable, "the receiver replies %s: %s", res.Status,
			strings.TrimSpace(string(reply)))
	case err != nil:
		return false, err
	case res.Header.Get("Content-Type") == protobuf:
		return false, partialSuccess(reply)
	}
	return false, nil
}

// partialSuccess returns an error if a reply says that spans were refused, or warns. It has the fields of an
// ExportTraceServiceResponse, whose package imports gRPC.
func partialSuccess(reply []byte) error {
	var refused uint64
	var says string
	err := fields(reply, func(n protowire.Number, _ uint64, part []byte) {
		if n == 1 {
			_ = fields(part, func(n protowire.Number, number uint64, text []byte) {
				switch n {
				case 1:
					refused = number
				case 2:
					says = string(text)
				}
			})
		}
	})
	if err == nil && (refused > 0 || says != "") {
		return fmt.Errorf("the receiver refuses %d spans: %s", refused, says)
	}
	return err
}

// fields calls do for the fields of a message that are numbers or have bytes.
func fields(message []byte, do func(n protowire.Number, number uint64, content []byte)) error {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		var number uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			content, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(n, kind, message)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		do(n, number, content)
		message = message[size:]
	}
	return nil
}
