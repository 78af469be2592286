package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/listener"
)

func TestSetupCreatesStreamsAndConsumers(t *testing.T) {
	b, file := served(t, 1)
	text := `
data: .
bus: {listen: "` + strings.TrimPrefix(b.ClientURL(), "nats://") + `", events: {maxMessages: 77}}
stores:
  Authors: {}
  Books: {map: {Authors: {key: author, target: books}}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	setup := func(code int, says []string, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		got := run(t.Context(), append([]string{"bus", "setup", "-c", file}, args...), streams{nil, &out, &errOut})
		all := strings.Join(strings.Fields(out.String()+errOut.String()), " ")
		for _, want := range says {
			if got != code || !strings.Contains(all, want) {
				t.Errorf("%v ended with %d, without %q:\n%s%s", args, got, want, &out, &errOut)
			}
		}
	}
	setup(1, []string{"stream EVENTS drifted: max_msgs 1000000 instead of 77",
		"consumer mapping of stream EVENTS missing", "2 in sync, 4 missing, 1 drifted"}, "--check")
	setup(1, []string{"2 in sync, 4 missing, 1 drifted"}, "--check")
	setup(0, []string{"stream EVENTS updated: max_msgs", "2 in sync, 4 created, 1 updated"})
	setup(0, []string{"stream DEAD in sync", "consumer cascade of stream RETRY in sync", "7 in sync"})
	setup(0, []string{"consumer a of stream EVENTS created", "consumer b of stream EVENTS created"}, "--listener", "a",
		"--listener", "b", "--store", "Books", "--ack-wait", "1m", "--from", "all")
	setup(0, []string{"11 in sync"}, "--check", "--listener", "a", "--listener", "b", "--store", "Books", "--ack-wait",
		"1m")
	setup(1, []string{"filter events.*.Store.*.Books.* events.*.Binary.*.Books.* events.*.Register.Books.* instead " +
		"of events.*.Store.> events.*.Register.> events.*.Binary.>, ack_wait 1m0s instead of 30s"}, "--check",
		"--listener", "a")
	setup(0, []string{"consumer s of stream EVENTS created"}, "--listener", "s", "--event", "Auth.LoggedIn")
	setup(1, []string{"filter events.*.Auth.LoggedIn.*.* instead of events.*.Auth.*.*.*"}, "--check", "--listener", "s",
		"--event", "Auth.*")
	// That of an earlier release, and of another program.
	wide := jetstream.ConsumerConfig{Durable: "wide", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "events.>"}
	if _, err := b.JetStream().CreateOrUpdateConsumer(t.Context(), "EVENTS", wide); err != nil {
		t.Fatal(err)
	}
	setup(1, []string{"consumer wide of stream EVENTS drifted: filter events.> instead of events.*.Store.> " +
		"events.*.Register.> events.*.Binary.>"}, "--check")
	setup(0, []string{"consumer wide of stream EVENTS updated"})
	setup(0, []string{"7 in sync"}, "--check")
	setup(0, []string{"consumer o-31 of stream EVENTS created"}, "--listener", "o", "--ordered")
	setup(0, []string{"consumer tea of stream EVENTS in sync"}, "--check", "--listener", "tea")

	// What the server changes and what it does not.
	until := time.Now().Add(time.Hour)
	if _, err := b.JetStream().PauseConsumer(t.Context(), "EVENTS", "mapping", until); err != nil {
		t.Fatal(err)
	}
	setup(1, []string{"consumer mapping of stream EVENTS drifted: pause_until"}, "--check")
	setup(0, []string{"consumer mapping of stream EVENTS updated: pause_until"})
	setup(0, []string{"7 in sync"}, "--check")
	memory := bus.StreamConfigs(bus.Limits{MaxMessages: 77})[0]
	memory.Storage, memory.MaxMsgsPerSubject, memory.MaxBytes = jetstream.MemoryStorage, 1, 1<<20
	if err := b.JetStream().DeleteStream(t.Context(), "EVENTS"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.JetStream().CreateStream(t.Context(), memory); err != nil {
		t.Fatal(err)
	}
	anew := "stream EVENTS must be created anew, because the server does not change storage. As the admin of the " +
		"bus: belfry listener list"
	setup(1, []string{"stream EVENTS to be recreated: storage Memory instead of File, max_bytes 1048576 instead of " +
		"4294967296, max_msgs_per_subject 1 instead of -1", anew, "nats stream rm EVENTS --force belfry bus setup"},
		"--check")
	setup(1, []string{"stream EVENTS to be recreated: storage Memory instead of File", anew})
	setup(1, []string{"1 to be recreated"})
	if err := b.JetStream().DeleteStream(t.Context(), "EVENTS"); err != nil {
		t.Fatal(err)
	}
	setup(0, []string{"stream EVENTS created"})
	setup(0, []string{"7 in sync"}, "--check")

	setup(2, []string{"is built in"}, "--listener", "mapping")
	setup(2, []string{"name it with --listener"}, "--store", "Books")
	setup(2, []string{"--from"}, "--listener", "x", "--from", "yesterday")
	setup(2, []string{"letters, digits"}, "--listener", "x.y")
	setup(2, []string{`the log has no events "Store.Save"`, "Store.Saved"}, "--listener", "x", "--event", "Store.Save")
	setup(1, []string{"can't connect"}, "--url", "nats://127.0.0.1:1")
	setup(2, []string{`has no store "Author"; it has Authors, Books`}, "--listener", "welcome", "--store", "Author")
}

func TestRolePrintsPermissions(t *testing.T) {
	for name, ordered := range map[string]bool{"listener": false, "my-audit": true} {
		args := []string{"bus", "role", name}
		if ordered {
			args = append(args, "--ordered")
		}
		var out bytes.Buffer
		if code := run(t.Context(), args, streams{nil, &out, &out}); code != 0 {
			t.Fatal(out.String())
		}
		conf := filepath.Join(t.TempDir(), "nats.conf")
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		text := out.String() +
			fmt.Sprintf("authorization {users: [{user: %s, password: p, permissions: $%s}]}\n", name, variable)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (embedded.Options{Config: conf}).Check(); err != nil {
			t.Errorf("a server can't read it: %v", err)
		}
		publish, subscribe, err := listener.Permissions(name, ordered)
		if err != nil {
			t.Fatal(err)
		}
		for _, subject := range append(publish, subscribe...) {
			if !strings.Contains(text, `"`+subject+`"`) {
				t.Errorf("%s lacks %s", name, subject)
			}
		}
	}
	for _, args := range [][]string{{"role", "a b"}, {"account", "a b"}, {"role", "a", "--request", "events.>"},
		{"account", "a", "--request", "store.Users.>"}} {
		var out bytes.Buffer
		if code := run(t.Context(), append([]string{"bus"}, args...), streams{nil, &out, &out}); code != 2 {
			t.Errorf("%q ends with %d: %s", args, code, &out)
		}
	}
}

// The sample of nats.conf is what the commands print for it.
func TestTheListenerOfNatsConfIsAsPrinted(t *testing.T) {
	conf, err := os.ReadFile("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	words := func(text string) string {
		var code []string
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			code = append(code, strings.Fields(line)...)
		}
		return strings.Join(code, " ")
	}
	for _, command := range []string{"role", "account"} {
		var out bytes.Buffer
		if code := run(t.Context(), []string{"bus", command, "listener"}, streams{nil, &out, &out}); code != 0 {
			t.Fatal(out.String())
		}
		if printed := words(out.String()); !strings.Contains(words(string(conf)), printed) {
			t.Errorf("nats.conf does not have what `belfry bus %s listener` prints:\n%s", command, &out)
		}
	}
}

// A server that reads the printed account lets its user do what a listener of that
// name, ordered and with requests for a store, needs.
func TestAccountPrintsImportsOfAllThatTheRolePermits(t *testing.T) {
	flags := []string{"my-audit", "--ordered", "--request", "store.Users.update", "--request", "store.Users.get"}
	printed := map[string]string{}
	for _, command := range []string{"role", "account"} {
		var out bytes.Buffer
		if code := run(t.Context(), append([]string{"bus", command}, flags...), streams{nil, &out, &out}); code != 0 {
			t.Fatal(out.String())
		}
		printed[command] = out.String()
	}
	publish, _, err := listener.Permissions("my-audit", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range append(publish, "store.Users.update", "store.Users.get") {
		if !strings.Contains(printed["role"], `"`+subject+`"`) ||
			!strings.Contains(printed["account"], fmt.Sprintf("{service: {account: BELFRY, subject: %q}}", subject)) {
			t.Errorf("%s is missing", subject)
		}
	}
}
