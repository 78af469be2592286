package objects_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/objects"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	test "belfry/test/kit"
)

const ndjson = "application/x-ndjson"

type streamed struct {
	Line, Status int
	UUID         string
	Revision     uint64
	Problem      apitest.Problem
}

// lines decodes the reply to a stream.
func lines(f *apitest.Front, text string) (all []streamed) {
	f.Helper()
	for one := range strings.Lines(text) {
		var l streamed
		f.Must(json.Unmarshal([]byte(one), &l))
		all = append(all, l)
	}
	return all
}

// stream sends a stream whose body ends, and returns the replies.
func stream(f *apitest.Front, path, body string, headers ...string) []streamed {
	f.Helper()
	r := f.Do("POST", path, "", append([]string{"Content-Type", ndjson}, headers...)...)
	if body != "" {
		req, err := http.NewRequestWithContext(f.Context(), "POST", f.URL+path, strings.NewReader(body))
		f.Must(err)
		req.Header.Set("Content-Type", ndjson)
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := f.Client().Do(req)
		f.Must(err)
		r = f.Read(resp)
	}
	return lines(f, r.Want(200).HasHeader("Content-Type", ndjson).HasHeader("Cache-Control", "no-store").Text)
}

func TestAStreamAnswersEachLine(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Create("emma")
	got := stream(f, "/books", `{"uuid":"a","title":"A","secret":"x"}`+"\r\n"+
		`{"title":1,}`+"\n\n"+
		`{"uuid":"emma"}`+"\n"+
		`[1]`+"\n"+
		strings.Repeat(" ", 2<<20)+"{}\n"+
		`{"t":"`+strings.Repeat("x", 300<<10)+`"}`+"\n"+
		`{"title":"last"}`)
	var statuses, numbers []int
	for _, l := range got {
		statuses, numbers = append(statuses, l.Status), append(numbers, l.Line)
	}
	if fmt.Sprint(statuses) != "[201 400 409 400 413 413 201]" || fmt.Sprint(numbers) != "[1 2 4 5 6 7 8]" {
		t.Fatalf("statuses %v of lines %v", statuses, numbers)
	}
	if got[1].Problem.Type != "urn:belfry:problem:invalid" || got[1].Problem.Instance == "" || got[0].UUID != "a" ||
		got[6].UUID == "" {
		t.Errorf("%+v", got)
	}
	f.Do("GET", "/books/a", "").Want(200).HasHeader("Etag", fmt.Sprintf(`"%d"`, got[0].Revision))
	if all := stream(f, "/books", ""); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	for _, l := range stream(f, "/books", `{"uuid":"emma"}`, "If-None-Match", "*") {
		if l.Status != 412 {
			t.Errorf("%+v", l)
		}
	}
	f.Do("POST", "/books", "{}", "Content-Type", "", "Content-Type", ndjson, keyHeader, "k").Want(400).Says(keyHeader)
	f.Do("POST", "/books", "{}", "Content-Type", "", "Content-Type", ndjson, "Content-Encoding", "gzip").Want(415)
	f.Do("PUT", "/books/emma", "{}", "Content-Type", "", "Content-Type", ndjson).Want(415)
	f.Do("POST", "/books", "{}\n", "Content-Type", "", "Content-Type", "application/jsonl; charset=utf-16").Want(415)
}

// A file of JSON lines is taken under every name that its type has, with a byte order mark or without, as the import
// takes it.
func TestJSONLinesHaveSeveralNames(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for i, kind := range []string{
		"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl",
		"application/jsonlines", "application/x-jsonlines",
		"Application/JSONL", "application/ndjson; charset=UTF-8",
	} {
		for j, mark := range []string{"", "\ufeff", "\ufeff\n"} {
			body := fmt.Sprintf("%s{\"uuid\":\"a-%d-%d\"}\n{\"uuid\":\"b-%d-%d\"}\n", mark, i, j, i, j)
			got := stream(f, "/books", body, "Content-Type", "", "Content-Type", kind)
			if len(got) != 2 || got[0].Status != 201 || got[1].Status != 201 {
				t.Errorf("%s with %q: %+v", kind, mark, got)
			}
		}
	}
	f.Do("POST", "/books", "\ufeff{\"uuid\":\"c\"}").Want(201)
	f.Do("PUT", "/books/c", "\ufeff{\"title\":\"C\"}").Want(200)
	f.Do("POST", "/batch", "\ufeff"+`{"operations":[{"method":"POST","path":"/books","body":{"uuid":"d"}}]}`).Want(200)
	f.Do("GET", "/books/d", "").Want(200)
	f.Do("POST", "/books", "{\"title\":\"x\"}", "Content-Type", "", "Content-Type",
		"application/json-seq").Want(415).Says("application/json")
}

// However many lines are written at once, the replies have the order of the lines, and of two lines with one uuid
// the first creates it.
func TestTheLinesOfAStreamKeepTheirOrder(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	var body strings.Builder
	const n = 1000
	for i := range n {
		fmt.Fprintf(&body, `{"uuid":"b%d","n":%d}`+"\n", i/2, i)
	}
	got := stream(f, "/books", body.String())
	if len(got) != n {
		t.Fatalf("%d replies", len(got))
	}
	for i, l := range got {
		if l.Line != i+1 || l.Status != 201+i%2*208 {
			t.Fatalf("reply %d: %+v", i, l)
		}
	}
	r := f.Do("GET", "/books/b499", "").Want(200)
	if !strings.Contains(r.Text, `"n":998`) {
		t.Error(r.Text)
	}
}

// live is a stream whose body a test writes while it reads the replies.
type live struct {
	*apitest.Front
	body    *io.PipeWriter
	replies *bufio.Scanner
	cancel  context.CancelFunc
}

func openStream(f *apitest.Front, path string, headers ...string) *live {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	f.Cleanup(cancel)
	read, write := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, "POST", f.URL+path, read)
	f.Must(err)
	req.Header.Set("Content-Type", ndjson)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	l := &live{Front: f, body: write, cancel: cancel}
	first := make(chan error, 1)
	go func() {
		_, err := io.WriteString(write, `{"n":0}`+"\n")
		first <- err
	}()
	resp, err := f.Client().Do(req)
	f.Must(err)
	f.Must(<-first)
	f.Cleanup(func() { _ = resp.Body.Close() })
	l.replies = bufio.NewScanner(resp.Body)
	l.next(201)
	return l
}

func (l *live) write(line string) {
	l.Helper()
	_, err := io.WriteString(l.body, line)
	l.Must(err)
}

func (l *live) next(status int) (s streamed) {
	l.Helper()
	if !l.replies.Scan() {
		l.Fatalf("the stream ended: %v", l.replies.Err())
	}
	l.Must(json.Unmarshal(l.replies.Bytes(), &s))
	if s.Status != status {
		l.Errorf("%s, want %d", l.replies.Text(), status)
	}
	return s
}

// A client may wait for the reply to a line before it sends the next one.
func TestALineIsAnsweredBeforeTheNextIsSent(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	l := openStream(f, "/books")
	for i := range 5 {
		l.write(fmt.Sprintf(`{"uuid":"b%d"}`+"\n", i))
		l.next(201)
		f.Do("GET", fmt.Sprint("/books/b", i), "").Want(200)
	}
	f.Must(l.body.Close())
	if l.replies.Scan() {
		t.Error(l.replies.Text())
	}
}

func TestAServerThatStopsOrIsReplacedEndsStreams(t *testing.T) {
	t.Parallel()
	for says, end := range map[string]func(*api.Server){
		"belfry is stopping: send this line":                          (*api.Server).Drain,
		"the configuration of the server has changed: send this line": (*api.Server).Retire,
	} {
		f := apitest.Start(t)
		l := openStream(f, "/books")
		end(f.API)
		if s := l.next(503); s.Line != 2 || !strings.Contains(s.Problem.Detail, says) {
			t.Errorf("%s: %+v", says, s)
		}
		if l.replies.Scan() {
			t.Error(l.replies.Text())
		}
	}
}

// What a client sends on after belfry has ended its stream is no further request.
func TestWhatIsLeftOfAStreamIsNoRequest(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.Listener.Addr().String())
	f.Must(err)
	defer func() { _ = conn.Close() }()
	chunk := func(text string) {
		_, _ = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(text), text) // fails once the connection is closed
	}
	_, err = fmt.Fprintf(conn,
		"POST /books HTTP/1.1\r\nHost: belfry\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", ndjson)
	f.Must(err)
	chunk(`{"uuid":"first"}` + "\n")
	replies := bufio.NewReader(conn)
	var reply strings.Builder
	for !strings.Contains(reply.String(), "first") {
		line, err := replies.ReadString('\n')
		f.Must(err)
		reply.WriteString(line)
	}
	f.API.Drain()
	for range 100 {
		chunk(strings.Repeat("GET /books/first HTTP/1.1\r\nHost: belfry\r\n\r\n", 20))
	}
	rest, _ := io.ReadAll(replies) // the connection may be reset
	reply.Write(rest)
	if text := reply.String(); strings.Count(text, "HTTP/1.1 ") != 1 || !strings.Contains(text, "belfry is stopping") {
		t.Errorf("replies:\n%s", text)
	}
}

// What a client sent when its connection broke may have been created, but not a line of which a part is missing.
func TestALineThatBreaksOffIsNotCreated(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	l := openStream(f, "/books")
	l.write(`{"uuid":"whole"}` + "\n" + `{"uuid":"half"}`)
	l.next(201)
	l.cancel()
	test.WaitFor(t, "the streams of the address to be over", func() bool {
		r := f.Do("POST", "/books", `{}`, "Content-Type", "", "Content-Type", ndjson)
		return r.StatusCode == 200
	})
	f.Do("GET", "/books/whole", "").Want(200)
	f.Do("GET", "/books/half", "").Want(404)
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	var open []*live
	for range 8 {
		open = append(open, openStream(f, "/books"))
	}
	f.Do("POST", "/books", "{}", "Content-Type", "", "Content-Type", ndjson).Want(429)
	f.Must(open[0].body.Close())
	test.WaitFor(t, "the end of a stream to count", func() bool {
		return f.Do("POST", "/books", "{}", "Content-Type", "", "Content-Type", ndjson).StatusCode == 200
	})
}

// A client that does not read its replies has to wait: no more lines are read than can be in flight and in the
// buffers of the connection.
func TestAClientThatDoesNotReadIsNotReadFrom(t *testing.T) {
	t.Parallel()
	var entered atomic.Int64
	hold := make(chan struct{})
	f := apitest.Start(t, func(o *api.Options) {
		held := o.Stores["Books"].WithOptions(func(s *store.Options) {
			s.Interceptor = holding(func(ctx context.Context) {
				entered.Add(1)
				select {
				case <-hold:
				case <-ctx.Done():
				}
			})
		})
		apitest.ExposeOnly(o, held, config.Expose{URL: "/books"})
	})
	body := strings.Repeat(`{"t":"`+strings.Repeat("x", 1000)+`"}`+"\n", 5000)
	done := make(chan []streamed, 1)
	go func() { done <- stream(f, "/books", body) }()
	test.WaitFor(t, "the lines in flight", func() bool { return entered.Load() >= 64 })
	if n := entered.Load(); n > 66 {
		t.Errorf("%d lines are in flight", n)
	}
	close(hold)
	if got := <-done; len(got) != 5000 || got[4999].Status != 201 {
		t.Errorf("%d replies", len(got))
	}
	if n := entered.Load(); n != 5000 {
		t.Errorf("the interceptor was asked %d times for 5000 lines", n)
	}
}

// holding is an interceptor that waits.
type holding func(context.Context)

func (h holding) Intercept(ctx context.Context, _ store.InterceptRequest) (object.Object, error) {
	h(ctx)
	return nil, nil
}

// What fails in an operation of a batch, or a line of a stream, leaves the others as they are, and its cause is in the
// log under the id of the request.
func TestTheLogSaysWhyAPartOfARequestFailed(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, func(o *api.Options) {
		failing := o.Stores["Books"].WithOptions(func(s *store.Options) {
			s.Interceptor = holding(func(context.Context) { panic("the cause") })
		})
		apitest.ExposeOnly(o, failing, config.Expose{URL: "/books"})
	})
	r, results := batch(f, []string{`GET /books/none`, `POST /books "body":{}`})
	statuses(f, results, 404, 500)
	got := stream(f, "/books", "[]\n{}\n")
	if len(got) != 2 || got[0].Status != 400 || got[1].Status != 500 {
		t.Fatalf("%+v", got)
	}
	for _, id := range []string{r.Header.Get("X-Request-Id"), got[1].Problem.Instance} {
		logged := slices.IndexFunc(f.Logs.Lines(), func(line string) bool {
			return strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, "the cause") &&
				strings.Contains(line, id) && strings.Contains(line, `"part":2`)
		})
		if logged < 0 {
			t.Errorf("nothing about %s in the log: %s", id, f.Logs.Lines())
		}
	}
}

// Who logs out while a stream is open creates nothing more by it.
func TestAStreamEndsWithItsSession(t *testing.T) {
	defer objects.SetRenewInterval(0)()
	f := apitest.StartLogin(t, 1)[0]
	bearer := []string{"Authorization", "Bearer " + f.Register("ada@example.com", "a fine password")}
	l := openStream(f, "/books", bearer...)
	l.write("{}\n")
	l.next(201)
	f.Do("DELETE", "/auth", "", bearer...).Want(204)
	l.write(`{"uuid":"late"}` + "\n")
	if s := l.next(401); s.Line != 3 {
		t.Errorf("%+v", s)
	}
	_ = l.body.Close()
	if l.replies.Scan() {
		t.Error(l.replies.Text())
	}
	f.Do("GET", "/books/late", "").Want(404)
}

// Each line is judged as if it had been sent alone.
func TestTheLinesOfAStreamAreAuthorized(t *testing.T) {
	t.Parallel()
	f, _ := startNotes(t, policy.Rules{Create: "has(input.open)", Get: "false"})
	got := stream(f, "/notes", "{}\n"+`{"open":true}`+"\n"+`{"uuid":"mine","open":true}`+"\n")
	if len(got) != 3 || got[0].Status != 401 || got[1].Status != 201 || got[1].UUID == "" || got[2].Status != 400 {
		t.Errorf("%+v", got)
	}
}

func TestTheLinesOfAStreamCountForLimits(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, func(o *api.Options) {
		o.Limits = httpkit.NewLimits(config.RequestLimits{Address: config.Rates{Writes: 100}, Loopback: true}, nil,
			prometheus.NewRegistry())
	})
	got := stream(f, "/books", strings.Repeat("{}\n", 1020)) // 1,000 at once, the others at 100 a second
	for _, l := range got {
		if l.Status != 201 {
			t.Fatalf("%+v", l)
		}
	}
	if r := f.Do("POST", "/books", "{}"); len(got) != 1020 || r.Header.Get("Ratelimit") == "" {
		t.Errorf("%d replies; the limit is not used: %v", len(got), r.Header)
	}
}
