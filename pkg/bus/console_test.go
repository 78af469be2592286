package bus_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/listener"
	"belfry/pkg/listener/deadletter"
	"belfry/pkg/listener/replay"
)

// What docs/reference/bus.md lists for the console is enough for dead letters and resets.
func TestAFrontWithThePermissionsForTheConsoleManagesDeadLettersAndListeners(t *testing.T) {
	passwords(t, t.TempDir())
	text, err := os.ReadFile("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/reference/bus.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(docs), "### The console")
	_, block, listed := strings.Cut(section, "```text\n")
	block, _, closed := strings.Cut(block, "```")
	const front = `"$JS.API.DIRECT.GET.EVENTS", "$JS.API.CONSUMER.LIST.EVENTS",`
	if !found || !listed || !closed || strings.Count(string(text), front) != 1 {
		t.Fatal("docs/reference/bus.md or nats.conf has another form")
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), front, front+block, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, file)
	prepare(t, url, listenerSpec("mapping"))
	denied := &logged{}
	b := as(t, url, "front", slog.New(slog.NewTextHandler(denied, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err := b.Publish(t.Context(), readable("e", 3)); err != nil {
		t.Fatal(err)
	}
	admin := dial(t, url, "admin")
	for range 2 {
		dead := &nats.Msg{Subject: "dead.mapping",
			Data: []byte("{}"), Header: nats.Header{listener.HeaderReason: {"out of tea"},
				listener.HeaderSubject: {"events.1.Store.Saved.Users.u"}, listener.HeaderSequence: {"1"}}}
		if _, err := admin.JetStream().PublishMsg(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
	}
	page, more, err := deadletter.Page(t.Context(), b, "", 0, 1)
	if err != nil || len(page) != 1 || !more || page[0].Reason != "out of tea" {
		t.Fatalf("%v, %t, %v", page, more, err)
	}
	if _, err := deadletter.Get(t.Context(), b, 1); err != nil {
		t.Error(err)
	}
	if err := deadletter.Retry(t.Context(), b, 1); err != nil {
		t.Error(err)
	}
	if err := deadletter.Drop(t.Context(), b, 2); err != nil {
		t.Error(err)
	}
	for _, place := range []string{"2", "all", "new", time.Now().Add(-time.Hour).Format(time.RFC3339)} {
		from, err := eventlog.ParseFrom(place)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := replay.Reset(t.Context(), b.JetStream(), "mapping", from); err != nil {
			t.Errorf("reset to %s: %v", place, err)
		}
	}
	if all, err := replay.List(t.Context(), b.JetStream()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if text := denied.String(); text != "" {
		t.Errorf("a permission is missing: %s", text)
	}
}
