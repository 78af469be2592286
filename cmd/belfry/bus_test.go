package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/listener/deadletter"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// served opens a bus as `belfry serve` does, with some events and a listener
// that fails at all of them, and writes a configuration that names it.
func served(t *testing.T, events int) (b *bus.Bus, file string) {
	t.Helper()
	folder := t.TempDir()
	address := fmt.Sprint("127.0.0.1:", kit.FreePort(t))
	file = filepath.Join(folder, "belfry.yaml")
	if err := os.WriteFile(file, []byte("data: .\nbus: {listen: \""+address+"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: filepath.Join(folder, "bus"), Listen: address}),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	for i := range events {
		e := event.Envelope{ID: fmt.Sprint("e", i), Event: event.StoreSaved, Store: "Books", UUID: fmt.Sprint("b", i),
			Revision: 1}
		natsserver.Publish(t, b,
			bus.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{
			Name: "tea", Start: listener.StartAll(),
			Handler: func(context.Context, *listener.Event) error {
				return listener.Permanent(
					errors.New("out of tea"))
			},
		})
	}()
	kit.WaitFor(t, "all are with the dead letters, and the bus knows", func() bool {
		n := 0
		if err := deadletter.List(t.Context(), b, deadletter.Select{},
			func(*deadletter.Letter) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		pending, unacked, err := listener.Lag(t.Context(), b, "tea")
		return n == events && err == nil && pending+unacked == 0
	})
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return b, file
}

func TestCommandsOfTheConfiguredBus(t *testing.T) {
	b, file := served(t, 6)
	say := func(code int, says string, args ...string) {
		t.Helper()
		belfry(t, code, says, append(args, "-c", file)...)
	}
	say(0, "out of tea", "dlq", "list")
	say(0, `"uuid":"b2"`, "dlq", "list", "--json", "--uuid", "b2")
	say(0, `"id": "e0"`, "dlq", "show", "1")
	say(1, "there is no dead letter 99", "dlq", "show", "99")
	say(2, "no dead letters selected", "dlq", "retry")
	say(2, "no dead letters selected", "dlq", "drop")
	say(2, "give either", "dlq", "drop", "1", "--listener", "tea")
	say(2, "give either", "dlq", "drop", "--all", "--listener", "tea")
	say(2, "is not a time", "dlq", "list", "--since", "yesterday")
	say(0, "1 of 1 dead letter to be redelivered", "dlq", "retry", "1")
	say(1, "there is no dead letter 1", "dlq", "retry", "1", "2")
	say(0, "1 of 1 dead letter deleted", "dlq", "drop", "--uuid", "b2")
	say(0, "0 of 0 dead letters", "dlq", "drop", "--reason", "coffee")
	say(0, "3 of 3 dead letters to be redelivered", "dlq", "retry", "--listener", "tea")
	say(0, "0 of 0 dead letters", "dlq", "drop", "--all")

	say(0, "tea", "listener", "list")
	say(0, `"name":"tea","ordered":false,"lag":0,"unacked":0,"redelivered":0,"retries":5,"letters":0`, "listener",
		"list", "--json")
	say(0, "tea reads the log from sequence 3 on", "listener", "reset", "tea", "--from", "3")
	say(0, `"lag":4`, "listener", "list", "--json")
	say(2, "--from", "listener", "reset", "tea")
	say(2, "is not a position in the log", "listener", "reset", "tea", "--from", "yesterday")
	say(2, "is beyond it", "listener", "reset", "tea", "--from", "9")
	say(1, "there is no listener coffee", "listener", "reset", "coffee", "--from", "all")

	say(0, `{"sequence":1,"id":"e0"`, "events", "get", "1")
	say(0, `"uuid":"b5"`, "events", "get", "--store", "Books", "--from", "6")
	say(1, "the log has no event 7", "events", "get", "7")
	say(2, "not both", "events", "get", "7", "--store", "Books")
	say(2, "--limit: expected a number", "events", "get", "--limit=-1")
	say(2, `the log has no subjects "Books"`, "bus", "setup", "--listener", "yours", "--filter", "Books")
	say(2, "is not a durable event", "events", "get", "--event", "Store.Get")
	say(2, "is not a durable event", "events", "tail", "--event", "Books")

	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	say(1, "can't connect to the bus at nats://127.0.0.1:", "listener", "list")
}

// Whoever follows events learns that nothing follows them anymore.
func TestAnInterruptedTailExitsWith130(t *testing.T) {
	_, file := served(t, 2)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	read, write := io.Pipe()
	code := make(chan int, 1)
	var errOut bytes.Buffer
	go func() {
		code <- run(ctx, []string{"events", "tail", "-c", file, "--from", "all", "--store", "Books"},
			streams{nil, write, &errOut})
		_ = write.Close()
	}()
	lines := bufio.NewScanner(read)
	for _, id := range []string{"e0", "e1"} {
		if !lines.Scan() || !strings.Contains(lines.Text(), `"id":"`+id+`"`) {
			t.Errorf("%s instead of %s", lines.Text(), id)
		}
	}
	interrupt()
	if lines.Scan() {
		t.Errorf("more is printed: %s", lines.Text())
	}
	if got := <-code; got != exitInterrupted {
		t.Errorf("exit %d: %s", got, errOut.String())
	}
}

func TestBusFlagsOverrideTheConfiguration(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none, free := write("none.yaml", "bus: {listen: \"\"}\n"), write("free.yaml", "bus: {listen: \"127.0.0.1:0\"}\n")
	external := write("external.yaml", "bus: {url: \"nats://127.0.0.1:1\", user: belfry, password: secret}\n")
	password := write("password", "hidden\n")
	belfry(t, 2, "set bus.listen", "dlq", "list", "-c", none)
	belfry(t, 2, "with --url", "events", "get", "-c", free)
	belfry(t, 1, "can't connect to the bus at nats://127.0.0.1:1", "listener", "list", "-c", external)
	belfry(t, 2, "choose one", "dlq", "list", "-c", external, "--user", "admin", "--creds", password)
	belfry(t, 2, "--password-file needs --user", "doctor", "-c", external, "--password-file", password)
	belfry(t, 2, "--password-file needs --user", "dlq", "list", "-c", external, "--password-file", password)
	belfry(t, 2, "can't read the file", "dlq", "list", "-c", external, "--user", "admin", "--password-file",
		folder+"/no")
	belfry(t, 2, "can't read the file", "dlq", "list", "-c", external, "--creds", folder+"/no")
	belfry(t, 1, "at nats://127.0.0.1:1,nats://127.0.0.1:1:", "dlq", "list", "--url",
		"nats://me:secret@127.0.0.1:1,127.0.0.1:1")

	for _, c := range []struct {
		flags command.BusUser
		want  bus.Auth
	}{
		{command.BusUser{}, bus.Auth{User: "belfry", Password: "secret"}},
		{command.BusUser{User: "admin", PasswordFile: password}, bus.Auth{User: "admin", Password: "hidden"}},
		{command.BusUser{Creds: password}, bus.Auth{Credentials: password}},
	} {
		read := func() (*config.Config, error) {
			return configuration{configFile: configFile{Config: external}}.load("")
		}
		if o, err := c.flags.Options(read); err != nil || o.Auth != c.want ||
			!strings.HasPrefix(o.URL, "nats://127.0.0.1:1") {
			t.Errorf("%+v: %+v, %v", c.flags, o, err)
		}
	}
}
