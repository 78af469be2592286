package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

// file writes a server's configuration.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serverOptions configures a server by a file with this text.
func serverOptions(t *testing.T, conf string) embedded.Options {
	t.Helper()
	return embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0", Config: file(t, conf)}
}

func TestEmbeddedServerRunsWithNatsConf(t *testing.T) {
	store := t.TempDir()
	passwords(t, store)
	var lines logged
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b := open(t, bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: fmt.Sprint("127.0.0.1:", kit.FreePort(t)),
			Config: "../../nats.conf", Logger: log}),
		Auth:   bus.Auth{User: "belfry", Password: password("belfry")},
		Logger: log,
	})
	if err := b.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "belfry bus setup") {
		t.Errorf("without streams: %v", err)
	}
	prepare(t, b.ClientURL(), listenerSpec("mapping"), listenerSpec("listener"))
	eventually(t, func() bool { return b.Ready(t.Context()) == nil })
	if err := b.Publish(t.Context(), readable("e", 50)); err != nil {
		t.Fatal(err)
	}
	if err := b.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	if n := handle(t, b, listenerSpec("mapping"), 50); n != 50 {
		t.Errorf("the worker in the same process handles %d events", n)
	}
	if n := handle(t, as(t, b.ClientURL(), "listener", nil), listenerSpec("listener"), 50); n != 50 {
		t.Errorf("the listener over the network handles %d events", n)
	}
	if _, err := os.Stat(filepath.Join(store, "jetstream", "BELFRY", "streams", "EVENTS")); err != nil {
		t.Errorf("the data is elsewhere: %v", err)
	}
	if b.HasInterest("Store.Saved") {
		t.Error("there is interest without a subscriber")
	}
	observer, _ := connectAs(t, b.ClientURL(), "observer")
	if _, err := observer.SubscribeSync("Store.Saved"); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return b.HasInterest("Store.Saved") })
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := stored(t, as(t, b.ClientURL(), "admin", nil)); n != 50 {
		t.Errorf("after a restart %d events are stored", n)
	}
	if _, err := connect(b.ClientURL()); err == nil {
		t.Error("a client without credentials is accepted")
	}
}

func TestEmbeddedServerFillsInMissingSettings(t *testing.T) {
	folder := t.TempDir()
	for name, conf := range map[string]string{
		"nothing":       "",
		"little":        "server_name: x\n",
		"only users":    "accounts {A: {jetstream: enabled, users: [{user: u, password: p}]}}\n",
		"one user":      "authorization {user: u, password: p}\n",
		"no jetstream":  "jetstream {}\nauthorization {users: [{user: u, password: p}]}\n",
		"jetstream: on": "jetstream: enabled\nauthorization {user: u, password: p}\n",
	} {
		t.Run(name, func(t *testing.T) {
			server := serverOptions(t, conf)
			server.Folder = filepath.Join(folder, name)
			o := bus.Options{Server: embedded.New(server)}
			if strings.Contains(conf, "user") {
				o.Auth = bus.Auth{User: "u", Password: "p"}
			}
			b := open(t, o)
			if err := b.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := b.Publish(t.Context(), events("e", 3, 10)); err != nil {
				t.Fatal(err)
			}
			if err := b.Sync(t.Context()); err != nil {
				t.Error(err)
			}
			if found, err := filepath.Glob(filepath.Join(server.Folder, "jetstream", "*", "streams", "EVENTS", "msgs",
				"*.blk")); err != nil || len(found) != 1 {
				t.Errorf("the data folder holds %v, %v", found, err)
			}
			if !strings.HasPrefix(b.ClientURL(), "nats://127.0.0.1:") {
				t.Errorf("it listens at %s", b.ClientURL())
			}
		})
	}
}

func TestUnusableConfigFileIsRejected(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	t.Setenv("REFERENCE", "$hunter2")
	t.Setenv("COMMENT", "# hunter2")
	t.Setenv("NOTHING", "")
	user := bus.Auth{User: "u", Password: "hunter2"}
	for _, c := range []struct {
		conf string
		auth bus.Auth
		says string
	}{
		{"jetstream: disabled\n", bus.Auth{}, "jetstream is disabled"},
		{"jetstream {enabled: false}\n", bus.Auth{}, "jetstream is disabled"},
		{"max_payload: 64KB\n", bus.Auth{}, "max_payload is 65536 bytes; belfry's messages need 1MB"},
		{"server_name: a\ncluster {name: c, listen: 127.0.0.1:6222}\n", bus.Auth{},
			"a cluster needs jetstream.sync_interval: always"},
		{"jetstreem {}\n", bus.Auth{}, `unknown field "jetstreem"`},
		{"a: [\n", bus.Auth{}, "can't be used"},
		{"authorization {user: u, password: $BELFRY_NOWHERE}\n", user, "BELFRY_NOWHERE"},
		{"authorization {user: u, password: $REFERENCE}\n", user, "'REFERENCE' on line 1 could not be parsed"},
		{"authorization {user: u, password: $COMMENT}\n", user, "'COMMENT' on line 1 could not be parsed"},
		{"authorization {users: [{user: v, password: x}, {user: u, password: $NOTHING}]}\n", user,
			"user u has an empty password"},
		{"tls {cert_file: none.pem, key_file: none.key}\n", bus.Auth{}, "none.pem"},
		{"debug: false\n", user, "has no users, so bus.user and the like would protect nothing"},
		{"write_deadline: 1s\nauthorization {user: u, password: $SECRET}\n", bus.Auth{User: "u", Password: "wrong"},
			"rejects belfry: set bus.user"},
		{"write_deadline: 1s\nauthorization {user: u, password: $SECRET}\n", bus.Auth{},
			"rejects belfry: set bus.user"},
		{"accounts {A: {users: [{user: u, password: $SECRET}]}}\n", user,
			"the account A of belfry's user has no streams"},
	} {
		server := serverOptions(t, c.conf)
		b, err := bus.Open(t.Context(), bus.Options{Server: embedded.New(server), Auth: c.auth})
		if err == nil {
			_ = b.Close(context.Background())
		}
		if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), server.Config) {
			t.Errorf("%q is %v", c.conf, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error for %q contains the password: %v", c.conf, err)
		}
	}
}

func TestUserOfTheConfigFileMayUseAnNKey(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := pair.PublicKey()
	seed, _ := pair.Seed()
	b := open(t, bus.Options{
		Server: embedded.New(serverOptions(t, "authorization {users: [{nkey: "+public+"}]}\n")),
		Auth:   bus.Auth{NKeySeed: string(seed)},
	})
	if err := b.Publish(t.Context(), events("e", 1, 10)); err != nil {
		t.Error(err)
	}
}

func TestSyncIsSkippedWhenTheServerSyncsAlways(t *testing.T) {
	for interval, syncs := range map[string]bool{"always": false, "1m": true} {
		server := serverOptions(t, "jetstream {sync_interval: "+interval+"}\n")
		b := open(t, bus.Options{Server: embedded.New(server)})
		if err := b.Publish(t.Context(), events("e", 1, 10)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(server.Folder, "jetstream"),
			filepath.Join(server.Folder, "moved")); err != nil {
			t.Fatal(err)
		}
		if err := b.Sync(t.Context()); (err != nil) != syncs {
			t.Errorf("with sync_interval: %s a sync without files is %v", interval, err)
		}
		if err := os.Rename(filepath.Join(server.Folder, "moved"),
			filepath.Join(server.Folder, "jetstream")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAddressIsTheURLForClients(t *testing.T) {
	certificate, key, _ := tlskit.Authority(t)
	for conf, want := range map[string]string{
		"":                      "nats://127.0.0.1:4222",
		"port: 4333\n":          "nats://127.0.0.1:4333",
		"listen: 0.0.0.0:4444":  "nats://127.0.0.1:4444",
		"listen: 10.0.0.7:4444": "nats://10.0.0.7:4444",
		fmt.Sprintf("port: 4333\ntls {cert_file: %q, key_file: %q}\n", certificate, key): "tls://127.0.0.1:4333",
	} {
		e := embedded.Options{Config: file(t, conf)}
		if got, err := e.Address(); err != nil || got != want {
			t.Errorf("%q is reached at %s, %v", conf, got, err)
		}
		e.Listen = "127.0.0.1:4555"
		if got, err := e.Address(); err != nil || !strings.HasSuffix(got, "://127.0.0.1:4555") {
			t.Errorf("bus.listen beside %q is %s, %v", conf, got, err)
		}
	}
	for _, e := range []embedded.Options{{Listen: "127.0.0.1:0"}, {Config: file(t, "port: -1\n")},
		{Config: file(t, "x: 1\n")}, {Listen: "x"}} {
		if got, err := e.Address(); !errors.Is(err, errs.Invalid) {
			t.Errorf("%+v is reached at %s, %v", e, got, err)
		}
	}
	if got, err := (embedded.Options{}).Address(); err != nil || got != "" {
		t.Errorf("a server without a port is reached at %s, %v", got, err)
	}
}

func TestConfigFileMayEnableTLS(t *testing.T) {
	certificate, key, authority := tlskit.Authority(t)
	conf := fmt.Sprintf("tls {cert_file: %q, key_file: %q, ca_file: %q, verify: true}\nauthorization {user: u, "+
		"password: p}\n", certificate, key, authority)
	server := serverOptions(t, conf)
	o := bus.Options{Server: embedded.New(server), Auth: bus.Auth{User: "u", Password: "p"}}
	o.TLS = bus.TLS{CA: authority, Cert: certificate, Key: key} // for commands; not used inside
	b := open(t, o)
	if err := b.Publish(t.Context(), readable("e", 5)); err != nil {
		t.Fatal(err)
	}
	if url := b.ClientURL(); !strings.HasPrefix(url, "tls://") {
		t.Errorf("clients get the URL %s", url)
	}
	outside := open(t, bus.Options{URL: b.ClientURL(), Unmanaged: true, Auth: o.Auth, TLS: o.TLS})
	if n := handle(t, outside, listener.Spec{Name: "outside", Start: listener.StartAll()}, 5); n != 5 {
		t.Errorf("a listener over the network handles %d events", n)
	}
	stranger := bus.Auth{User: o.Auth.User, Password: "wrong"}
	if _, err := bus.Dial(bus.Options{URL: b.ClientURL(), Auth: stranger, TLS: o.TLS}); err == nil ||
		!strings.Contains(err.Error(), "it rejects the user") {
		t.Errorf("a wrong password: %v", err)
	}
	files, err := embedded.OpenFiles(server)
	if err != nil {
		t.Fatal(err)
	}
	command, err := bus.Dial(bus.Options{URL: b.ClientURL(), Syncer: files, Auth: o.Auth, TLS: o.TLS})
	if err != nil {
		t.Fatal(err)
	}
	defer command.Close()
	if err := command.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	for what, tls := range map[string]bus.TLS{"a client without certificates": {},
		"a client without its own certificate": {CA: authority},
		"a client without the CA":              {Cert: certificate, Key: key}} {
		if c, err := bus.Dial(bus.Options{URL: b.ClientURL(), Auth: o.Auth, TLS: tls}); err == nil {
			c.Close()
			t.Errorf("%s is accepted", what)
		}
	}
}

// Files of earlier releases are accepted, with a warning that says whom to move.
func TestAFileWithAListenerInTheAccountOfTheLogIsWarnedAbout(t *testing.T) {
	passwords(t, t.TempDir())
	authorization := func(publish string) string {
		return "authorization {users: [{user: a, password: p}, {user: b, password: p, permissions: {publish: " +
			publish + "}}]}"
	}
	for name, c := range map[string]struct{ text, user string }{
		"as shipped":                {conf(t), ""},
		"of an earlier release":     {sharedAccount(t), "listener"},
		"no accounts":               {authorization(`["$JS.API.CONSUMER.MSG.NEXT.EVENTS.b", "dead.b"]`), "b"},
		"wildcards":                 {authorization(`["$JS.*.CONSUMER.>"]`), "b"},
		"all but the log":           {authorization(`{deny: "events.>"}`), "b"},
		"no requests to the server": {authorization(`["store.>"]`), ""},
		"a writer of the log":       {authorization(`[">"]`), ""},
	} {
		var users []string
		for _, w := range serverOptions(t, c.text).Warnings() {
			user, _, _ := strings.Cut(strings.TrimPrefix(w.Error(), "user "), " ")
			users = append(users, user)
		}
		if got := strings.Join(users, ", "); got != c.user {
			t.Errorf("%s: warned about %q, want %q", name, got, c.user)
		}
	}
}
