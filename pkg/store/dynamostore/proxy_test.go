package dynamostore_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// proxy forwards requests between a backend and its server and injects faults.
type proxy struct {
	url, server string

	mu   sync.Mutex
	rule func(op, body string) fault
	ops  []string // since set
	sent int      // bytes of the bodies of these requests
}

// fault is what happens to a request.
type fault struct {
	drop        bool   // the server never gets it
	cutReply    bool   // the connection breaks instead of a reply
	hang        bool   // nothing happens until the caller disconnects
	code        string // the reply is this error, and the server never gets the request
	status      int    // of that reply; 0 is 400
	unprocessed bool   // the reply to a batch is that all of it is unprocessed
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	g := &proxy{server: server}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	g.url = front.URL
	return g
}

// set sets the rule for further requests and resets the operations; nil forwards everything.
func (g *proxy) set(rule func(op, body string) fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule, g.ops, g.sent = rule, nil, 0
}

// seen returns the operations since set.
func (g *proxy) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.ops...)
}

// sentBytes returns the bytes of requests since set.
func (g *proxy) sentBytes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sent
}

func (g *proxy) faultFor(op, body string) fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ops = append(g.ops, op)
	g.sent += len(body)
	if g.rule == nil {
		return fault{}
	}
	return g.rule(op, body)
}

func (g *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f := g.faultFor(op, string(body))
	switch {
	case f.hang:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.code != "":
		respond(w, cmp.Or(f.status, http.StatusBadRequest), map[string]any{
			"__type": "com.amazonaws.dynamodb.v20120810#" + f.code, "message": "injected",
		})
	case f.unprocessed:
		var asked struct{ RequestItems json.RawMessage }
		if err := json.Unmarshal(body, &asked); err != nil {
			panic(err)
		}
		respond(w, http.StatusOK, map[string]any{
			"Responses": map[string]any{}, "UnprocessedItems": asked.RequestItems,
			"UnprocessedKeys": asked.RequestItems,
		})
	case f.drop:
		panic(http.ErrAbortHandler)
	default:
		g.forward(w, r, body, f.cutReply)
	}
}

func respond(w http.ResponseWriter, status int, content map[string]any) {
	reply, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE(reply)))
	w.WriteHeader(status)
	_, _ = w.Write(reply)
}

func (g *proxy) forward(w http.ResponseWriter, r *http.Request, body []byte, cutReply bool) {
	onward, err := http.NewRequestWithContext(r.Context(), r.Method, g.server+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	onward.Header = r.Header.Clone()
	reply, err := http.DefaultTransport.RoundTrip(onward)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(reply.Body)
	if err != nil || cutReply {
		panic(http.ErrAbortHandler)
	}
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.StatusCode)
	_, _ = w.Write(data)
}

// firstTimes injects a fault into the first n requests of an operation.
func firstTimes(n int, op string, f fault) func(string, string) fault {
	return func(got, _ string) fault {
		if got == op && n > 0 {
			n--
			return f
		}
		return fault{}
	}
}

// everyTime injects a fault into every request of an operation.
func everyTime(op string, f fault) func(string, string) fault { return firstTimes(1<<30, op, f) }
