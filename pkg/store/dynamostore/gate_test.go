package dynamostore_test

import (
	"bytes"
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

// gate stands between a backend and its server and breaks what it is told to.
type gate struct {
	url, server string

	mu   sync.Mutex
	rule func(op, body string) fate
	ops  []string // what came by
}

// fate is what becomes of a request.
type fate struct {
	lost  bool   // the server never gets it
	cut   bool   // the connection breaks instead of a reply
	stuck bool   // nothing happens until the caller goes away
	code  string // the reply is this error, and the server never gets the request
	none  bool   // the reply to a batch is that nothing of it was done
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	g := &gate{server: server}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	g.url = front.URL
	return g
}

// set gives the rule from now on; nil lets everything pass.
func (g *gate) set(rule func(op, body string) fate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rule, g.ops = rule, nil
}

// seen returns the operations since set.
func (g *gate) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.ops...)
}

func (g *gate) decide(op, body string) fate {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ops = append(g.ops, op)
	if g.rule == nil {
		return fate{}
	}
	return g.rule(op, body)
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	f := g.decide(op, string(body))
	switch {
	case f.stuck:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.code != "":
		answer(w, http.StatusBadRequest, map[string]any{
			"__type": "com.amazonaws.dynamodb.v20120810#" + f.code, "message": "as the test wants it",
		})
	case f.none:
		var asked struct{ RequestItems json.RawMessage }
		if err := json.Unmarshal(body, &asked); err != nil {
			panic(err)
		}
		answer(w, http.StatusOK, map[string]any{
			"Responses": map[string]any{}, "UnprocessedItems": asked.RequestItems, "UnprocessedKeys": asked.RequestItems,
		})
	case f.lost:
		panic(http.ErrAbortHandler)
	default:
		g.pass(w, r, body, f.cut)
	}
}

func answer(w http.ResponseWriter, status int, content map[string]any) {
	reply, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE(reply)))
	w.WriteHeader(status)
	_, _ = w.Write(reply)
}

func (g *gate) pass(w http.ResponseWriter, r *http.Request, body []byte, cut bool) {
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
	if err != nil || cut {
		panic(http.ErrAbortHandler)
	}
	for name, values := range reply.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(reply.StatusCode)
	_, _ = w.Write(data)
}

// times lets a fate befall the first n requests of an operation.
func times(n int, op string, f fate) func(string, string) fate {
	return func(got, _ string) fate {
		if got == op && n > 0 {
			n--
			return f
		}
		return fate{}
	}
}

// always lets a fate befall every request of an operation.
func always(op string, f fate) func(string, string) fate { return times(1<<30, op, f) }
