package operations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// books is DynamoDB as one front sees it: it counts the writes of books, and holds those whose uuid ends with "before",
// which are not made, or "after", which are made, and whose reply does not arrive.
type books struct {
	*httptest.Server
	holds bool
	made  *writes
	held  chan string // uuids
}

// writes counts how often each book was written.
type writes struct {
	mu sync.Mutex
	of map[string]int
}

func (w *writes) add(uuid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[uuid]++
}

func (w *writes) count(uuid string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[uuid]
}

func (w *writes) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.of)
}

func newBooks(t *testing.T, server string, made *writes, holds bool) *books {
	t.Helper()
	upstream, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	b := &books{holds: holds, made: made, held: make(chan string, 100)}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) }}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		uuid := writtenBook(r, body)
		if uuid == "" {
			pass.ServeHTTP(w, r)
			return
		}
		if b.holds && strings.HasSuffix(uuid, "before") {
			b.hold(r, uuid)
			return
		}
		reply := httptest.NewRecorder()
		pass.ServeHTTP(reply, r)
		if reply.Code == http.StatusOK {
			b.made.add(uuid)
		}
		if b.holds && strings.HasSuffix(uuid, "after") {
			b.hold(r, uuid)
			return
		}
		for name, values := range reply.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(reply.Code)
		_, _ = w.Write(reply.Body.Bytes())
	}))
	t.Cleanup(b.Close)
	return b
}

// hold keeps a request without a reply until who has sent it is killed.
func (b *books) hold(r *http.Request, uuid string) {
	b.held <- uuid
	<-r.Context().Done()
}

// writtenBook returns the uuid of the book that a request to DynamoDB writes, "" for none.
func writtenBook(r *http.Request, body []byte) string {
	type text struct{ S string }
	var in struct {
		TableName, UpdateExpression string

		Key, Item map[string]text
	}
	if json.Unmarshal(body, &in) != nil || !strings.HasSuffix(in.TableName, "Books") {
		return ""
	}
	key := in.Item["k"].S
	switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); {
	case operation == "PutItem":
	case operation == "UpdateItem" && strings.HasPrefix(in.UpdateExpression, "SET r = :r, v = :v"):
		key = in.Key["k"].S
	default:
		return ""
	}
	for _, kind := range []string{"post", "put", "delete", "batch"} {
		if at := strings.Index(key, kind+"-"); at >= 0 {
			return key[at:]
		}
	}
	return ""
}

// send makes a request with a key, and returns the reply.
func send(t *testing.T, server, method, path, body, key string) (status int, reply string, replayed bool, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server+path, strings.NewReader(body))
	if err != nil {
		return 0, "", false, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", false, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), res.Header.Get("Idempotency-Replayed") == "true" ||
		strings.Contains(string(data), `"Idempotency-Replayed":"true"`), err
}

// TestEachRequestOverHTTPTakesEffectOnceWhenItsFrontIsKilled: a front is killed after a write that the client has no
// reply to, or right before it. The same request to another front executes it once, and gets its reply.
func TestEachRequestOverHTTPTakesEffectOnceWhenItsFrontIsKilled(t *testing.T) {
	t.Parallel()
	database, made := backing.Dynoxide(t), &writes{of: map[string]int{}}
	port := kit.FreePort(t)
	configs := map[bool]string{true: fmt.Sprintf("{url: 'nats://127.0.0.1:%d'}", port),
		false: fmt.Sprintf("{listen: '127.0.0.1:%d'}", port)}
	var servers []*process.Server
	var fronts []*books
	for _, holds := range []bool{false, true} {
		front := newBooks(t, database.URL, made, holds)
		path := filepath.Join(t.TempDir(), "belfry.yaml")
		text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nstores: {Books: {expose: {}}}\nbus: %s\nbackends: "+
			"{default: {type: dynamodb, region: eu-central-1, endpoint: '%s'}}\n",
			t.TempDir(), configs[holds], front.URL)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		fronts, servers = append(fronts, front), append(servers, process.Serve(t, path))
	}
	type sent struct {
		method, path, body string
		writes             []string
		status             int
	}
	var all []sent
	for _, when := range []string{"before", "after"} {
		for _, kind := range []string{"put", "delete"} {
			uuid := kind + "-" + when
			if status, reply, _, err := send(t, servers[0].URL, "POST", "/books", `{"uuid":"`+uuid+`"}`,
				""); status != 201 || err != nil {
				t.Fatalf("%d %s, %v", status, reply, err)
			}
		}
		one := func(kind string) []string { return []string{kind + "-" + when} }
		all = append(all,
			sent{"POST", "/books", `{"uuid":"post-` + when + `"}`, one("post"), 201},
			sent{"PUT", "/books/put-" + when, `{"year":1815}`, one("put"), 200},
			sent{"DELETE", "/books/delete-" + when, "", one("delete"), 204},
			sent{"POST",
				"/batch", fmt.Sprintf(
					`{"operations":[{"method":"POST","path":"/books","headers":{"Idempotency-Key":"b1%s"},"body":{"uuid":"batch-%s-done"}},`+
						`{"method":"POST","path":"/books","headers":{"Idempotency-Key":"b2%s"},"body":{"uuid":"batch-%s"}}]}`, when, when, when, when), []string{"batch-" + when + "-done", "batch-" + when}, 200},
		)
	}
	made.clear()
	key := func(s sent) string {
		if s.path == "/batch" {
			return ""
		}
		return s.writes[0]
	}
	var lost, again sync.WaitGroup
	for _, s := range all {
		lost.Go(func() {
			if status, reply, _, err := send(t, servers[1].URL, s.method, s.path, s.body, key(s)); err == nil {
				t.Errorf("%s has a reply: %d %s", s.writes, status, reply)
			}
		})
	}
	for range all {
		select {
		case <-fronts[1].held:
		case <-time.After(kit.Limit):
			t.Fatal("not all requests are at their write")
		}
	}
	servers[1].Kill()
	lost.Wait()
	for _, s := range all {
		again.Go(func() {
			status, reply, _, err := send(t, servers[0].URL, s.method, s.path, s.body, key(s))
			repeated, same, replayed, failed := send(t, servers[0].URL, s.method, s.path, s.body, key(s))
			if status != s.status || err != nil || repeated != status || failed != nil || !replayed ||
				s.path != "/batch" && same != reply {
				t.Errorf("%s: %d %s, %v, then %d %s, %v", s.writes, status, reply, err, repeated, same, failed)
			}
			if s.path == "/batch" && strings.Count(same, `"status":201`) != 2 {
				t.Errorf("%s: %s", s.writes, same)
			}
		})
	}
	again.Wait()
	for _, s := range all {
		for _, uuid := range s.writes {
			if n := made.count(uuid); n != 1 {
				t.Errorf("%s was written %d times", uuid, n)
			}
		}
	}
}
