// Package backends runs the real belfry on every backend: shipped configurations,
// stores on several backends, migrations from one to another, and servers that are
// unavailable or have faulty connections.
package backends

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tidwall/gjson"

	"belfry/config"
	"belfry/pkg/app"
	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

const patience = time.Minute

// write writes a file in a folder.
func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveInProcess starts a belfry in this process, with a folder of its own, and returns its URL.
func serveInProcess(t *testing.T, text string) string {
	t.Helper()
	return "http://" + startInProcess(t, "listen: 127.0.0.1:0\nbus: {listen: \"\"}\n"+text).HTTPAddress()
}

// startInProcess starts a belfry in this process, with a whole configuration.
func startInProcess(t *testing.T, text string) *app.App {
	t.Helper()
	c, err := config.Load(write(t, t.TempDir(), "belfry.yaml", text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Start(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	return a
}

// reply is the response of a server.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) get(path string) string { return gjson.GetBytes(r.body, path).String() }

var client = &http.Client{Timeout: kit.Limit}

func ask(s *process.Server, method, path, body string) (reply, error) {
	return request(s.URL, method, path, body)
}

// request sends a request. headers are names and values in turn.
func request(base, method, path, body string, headers ...string) (reply, error) {
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = res.Body.Close() }()
	r := reply{status: res.StatusCode, header: res.Header}
	r.body, err = io.ReadAll(res.Body)
	return r, err
}

// must sends a request and requires a status.
func must(t *testing.T, s *process.Server, status int, method, path, body string) reply {
	t.Helper()
	r, err := ask(s, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	if r.status != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, r.status, status, r.body)
	}
	return r
}

// eventually sends GET requests until a value is as expected.
func eventually(t *testing.T, s *process.Server, path, of, want string) {
	t.Helper()
	process.Eventually(t, patience, func() error {
		r, err := ask(s, "GET", path, "")
		if err != nil {
			return err
		}
		if got := r.get(of); got != want {
			return fmt.Errorf("GET %s: %s is %q, want %q: %d %s", path, of, got, want, r.status, r.body)
		}
		return nil
	})
}

func idle(t *testing.T, s *process.Server) {
	t.Helper()
	if err := s.Idle(); err != nil {
		t.Fatal(err)
	}
}

func stop(t *testing.T, s *process.Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatalf("%v\n%s", err, s.Log())
	}
}

// belfry runs a command to its end and returns its output.
func belfry(t *testing.T, exit int, args ...string) (out, errOut string) {
	t.Helper()
	return run(t, process.Commands(t), exit, args...)
}

// belfryWithRace is belfry with the race detector, for what writes to backends: it takes several times as long.
func belfryWithRace(t *testing.T, exit int, args ...string) (out, errOut string) {
	t.Helper()
	return run(t, process.Program(t), exit, args...)
}

func run(t *testing.T, program string, exit int, args ...string) (out, errOut string) {
	t.Helper()
	out, errOut, got, err := process.Run(program, args...)
	if err != nil {
		t.Fatal(err)
	}
	if got != exit {
		t.Fatalf("belfry %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, exit, out, errOut)
	}
	return out, errOut
}

// verified requires that belfry verify checks some objects and finds no difference.
func verified(t *testing.T, config string) {
	t.Helper()
	out, _ := belfry(t, 0, "verify", "--deep", "--json", "--config", config)
	var report struct{ Objects, Targets, Entries, Copied int }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Objects == 0 || report.Entries+report.Copied == 0 {
		t.Errorf("belfry verify checked nothing: %s", out)
	}
}

// eventKey identifies the event of a write.
type eventKey struct {
	store, uuid string
	revision    uint64
}

// logged counts the events in the log of a bus.
func logged(t *testing.T, url string) map[eventKey]int {
	t.Helper()
	js := natsserver.JetStream(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, "EVENTS", jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	received := map[eventKey]int{}
	want := int(stream.CachedInfo().State.Msgs) //nolint:gosec // small
	batch, err := consumer.Fetch(want, natsserver.Wait()...)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for m := range batch.Messages() {
		n++
		var e event.Envelope
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			t.Fatal(err)
		}
		received[eventKey{e.Store, e.UUID, e.Revision}]++
	}
	if err := batch.Error(); err != nil || n != want {
		t.Fatalf("%d of %d events were read: %v", n, want, err)
	}
	return received
}

// same compares two bodies byte by byte.
func same(a, b reply) bool {
	return a.status == b.status && bytes.Equal(a.body, b.body) && a.header.Get("ETag") == b.header.Get("ETag")
}
