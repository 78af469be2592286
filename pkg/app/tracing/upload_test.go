package tracing

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"belfry/test/kit"
)

// replies is a receiver that replies with one status after the other, the last one again and again.
type replies struct {
	statuses []int
	bodies   [][]byte
	requests []*http.Request
}

// RoundTrip implements http.RoundTripper.
func (s *replies) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, body)
	status := s.statuses[min(len(s.requests), len(s.statuses))-1]
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("says the receiver"))}, nil
}

func uploadTo(t *testing.T, s *replies, endpoint string) (*uploader, *kit.Tail) {
	t.Helper()
	logged := &kit.Tail{}
	u, err := newUploader(Options{Endpoint: endpoint, Version: "1", Logger: slog.New(slog.NewTextHandler(logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	u.client.Transport = s
	return u, logged
}

var oneSpan = []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "one"}}}}}}

// A batch is sent again, later and for a minute at most, if the receiver is overloaded or unavailable.
func TestABatchIsSentAgainIfTheReceiverAsksForIt(t *testing.T) {
	for says, c := range map[string]struct {
		statuses []int
		requests int
		fails    string
	}{
		"accepted":       {[]int{200}, 1, ""},
		"accepted later": {[]int{503, 429, 502, 202}, 4, ""},
		"refused":        {[]int{400}, 1, "says the receiver"},
		"unavailable":    {[]int{504}, 0, "Gateway Timeout"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &replies{statuses: c.statuses}
			u, _ := uploadTo(t, s, "http://traces.example")
			began := time.Now()
			err := u.UploadTraces(t.Context(), oneSpan)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", says, err)
			}
			if c.requests > 0 && len(s.requests) != c.requests || len(s.requests) > 20 {
				t.Errorf("%s: %d requests", says, len(s.requests))
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%s: it took %s", says, took)
			}
			for _, body := range s.bodies {
				var sent tracepb.TracesData
				if err := proto.Unmarshal(body, &sent); err != nil || !bytes.Equal(body, s.bodies[0]) ||
					sent.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName() != "one" {
					t.Errorf("%s: %v, %v", says, &sent, err)
				}
			}
		})
	}
}

// A stop does not wait for what is sent again.
func TestAStopEndsAnUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &replies{statuses: []int{503}}
		u, _ := uploadTo(t, s, "http://traces.example")
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- u.UploadTraces(t.Context(), oneSpan) }()
		synctest.Wait()
		if err := u.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil || time.Since(began) > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// The receiver is the endpoint with its path, or with that of OTLP, and gets the headers of the environment. What is
// wrong with these is logged without their values.
func TestTheReceiverGetsTheHeadersOfTheEnvironment(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "X-Token=a%20secret, X-Other=1, broken-secret")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "X-Other=2,Content-Type=text/plain")
	for endpoint, want := range map[string]string{
		"HTTP://traces.example:4318": "http://traces.example:4318/v1/traces",
		"https://t.example/x/../y/":  "https://t.example/y", "http://t.example/": "http://t.example/",
	} {
		s := &replies{statuses: []int{200}}
		u, logged := uploadTo(t, s, endpoint)
		if err := u.UploadTraces(t.Context(), oneSpan); err != nil {
			t.Fatal(err)
		}
		r := s.requests[0]
		if got := r.URL.String(); got != want {
			t.Errorf("%s: %s", endpoint, got)
		}
		if h := r.Header; h.Get("X-Token") != "a secret" || h.Get("X-Other") != "2" || h.Get("Content-Type") != protobuf {
			t.Errorf("%v", h)
		}
		if text := logged.String(); !strings.Contains(text, "OTEL_EXPORTER_OTLP_HEADERS") ||
			strings.Contains(text, "secret") {
			t.Errorf("%q", text)
		}
	}
	for _, wrong := range []string{"ftp://x", "x", "http://", ":"} {
		if _, err := newUploader(Options{Endpoint: wrong}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

// A reply that is no message is an error, and neither panics nor is taken for success.
func TestARepliedMessageIsRead(t *testing.T) {
	for says, c := range map[string]struct {
		reply []byte
		fails string
	}{
		"nothing": {nil, ""}, "accepted": {partial(0, ""), ""}, "a part": {partial(3, "old"), "refuses 3 spans: old"},
		"a warning": {partial(0, "slow"), "slow"}, "cut off": {partial(3, "old")[:4], "EOF"},
	} {
		if err := partialSuccess(c.reply); (err == nil) != (c.fails == "") ||
			err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// partial is an ExportTraceServiceResponse about a part of the spans.
func partial(refused uint64, says string) []byte {
	var part, message []byte
	part = protowire.AppendVarint(protowire.AppendTag(part, 1, protowire.VarintType), refused)
	part = protowire.AppendString(protowire.AppendTag(part, 2, protowire.BytesType), says)
	return protowire.AppendBytes(protowire.AppendTag(message, 1, protowire.BytesType), part)
}
