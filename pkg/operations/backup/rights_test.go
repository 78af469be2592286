package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// What docs/reference/bus.md lists for backups is enough for a front, a worker, and both in one process, and without it
// a backup says what is missing.
func TestABackupNeedsNoMorePermissionsThanDocumented(t *testing.T) {
	t.Setenv("BELFRY_NATS_NAME", "test")
	for _, name := range []string{"FRONT", "WORKER", "ALL", "LISTENER", "OBSERVER", "CLIENT", "ADMIN", "SYSTEM"} {
		t.Setenv("BELFRY_"+name+"_PASSWORD", "pw-test")
	}
	conf, err := os.ReadFile("../../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../../docs/reference/bus.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(docs), "### Backups")
	_, block, listed := strings.Cut(section, "```text\n")
	block, _, closed := strings.Cut(block, "```")
	const role = `"events.>", "Store.*", "Register", "Binary.*",` // begins the permissions of FRONT, WORKER and ALL
	if !found || !listed || !closed || strings.Count(string(conf), role) != 3 {
		t.Fatal("docs/reference/bus.md or nats.conf has another form")
	}
	for name, text := range map[string]string{"as shipped": string(conf),
		"with what is documented": strings.ReplaceAll(string(conf), role, role+strings.TrimSpace(block)+",")} {
		t.Setenv("BELFRY_NATS_STORE", t.TempDir())
		f := newFixture(t)
		file := filepath.Join(t.TempDir(), "nats.conf")
		f.must(os.WriteFile(file, []byte(text), 0o600))
		url := natsserver.ServeFile(t, file).ClientURL()
		admin := f.connect(url, "admin")
		f.bus = admin
		f.publish("e", event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: "a"})
		for _, subject := range []string{"dead.mapping", "retry.mapping"} {
			_, err := admin.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: []byte("{}")})
			f.must(err)
		}
		for _, user := range []string{"front", "worker", "belfry"} {
			f.bus = f.connect(url, user)
			m, err := Make(t.Context(), f.destination(), f.options())
			if name == "as shipped" {
				if !errors.Is(err, errs.Denied) || !strings.Contains(err.Error(), "$JS.API.DIRECT.GET.") {
					t.Errorf("%s as shipped: %v", user, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", user, err)
				continue
			}
			for _, s := range m.Streams {
				if s.Messages != 1 {
					t.Errorf("%s has read %d messages of %s", user, s.Messages, s.Name)
				}
			}
		}
	}
}

// connect connects to the bus as a user.
func (f *fixture) connect(url, user string) *bus.Bus {
	f.Helper()
	b, err := bus.Open(f.Context(), bus.Options{URL: url, Auth: bus.Auth{User: user, Password: "pw-test"}})
	f.must(err)
	f.Cleanup(func() { _ = b.Close(f.Context()) })
	kit.WaitUntil(f, func() error { return b.Ready(f.Context()) })
	return b
}
