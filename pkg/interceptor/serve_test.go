package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
	"belfry/pkg/interceptor"
	"belfry/pkg/store/object"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

func connect(t *testing.T) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(natsserver.Serve(t, &server.Options{}).ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func TestASpecThatCannotWorkIsInvalid(t *testing.T) {
	allow := func(context.Context, interceptor.Request) interceptor.Response { return interceptor.Allow() }
	for name, spec := range map[string]interceptor.Spec{
		"no name":       {Handler: allow},
		"no handler":    {Name: "a"},
		"wildcard name": {Name: "*", Handler: allow},
		"two tokens":    {Name: "a.b", Handler: allow},
		"operation":     {Name: "a", Ops: []string{"save", ">"}, Handler: allow},
		"store":         {Name: "a", Stores: []string{""}, Handler: allow},
	} {
		if err := interceptor.Serve(t.Context(), nil, spec); !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARequestThatFailsIsAnsweredAtOnce(t *testing.T) {
	conn := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- interceptor.Serve(ctx, conn, interceptor.Spec{Name: "a", Stores: []string{"Books", "Pens"}, Handler: func(_ context.Context, r interceptor.Request) interceptor.Response {
			switch r.UUID {
			case "panic":
				panic("no title")
			case "amend":
				return interceptor.Amend(object.Object{"checked": []byte("true")})
			case "nothing":
				return interceptor.Amend(nil)
			}
			return interceptor.Refuse(409, "not now")
		}})
	}()
	ask := func(store, body string) string {
		t.Helper()
		var answer *nats.Msg
		kit.WaitUntil(t, func() (err error) {
			answer, err = natsserver.Request(conn, interceptor.Subject("save", store, "a"), []byte(body))
			return err
		})
		return string(answer.Data)
	}
	for _, c := range []struct{ store, body, want string }{
		{"Books", `{"uuid":"amend"}`, `{"amend":{"checked":true}}`},
		{"Pens", `{"uuid":"nothing"}`, `{"allow":true}`},
		{"Books", `{"uuid":"x"}`, `{"refuse":{"status":409,"message":"not now"}}`},
		{"Books", `{"uuid":"panic"}`, `{}`},
		{"Books", `{`, `{}`},
	} {
		if got := ask(c.store, c.body); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.store, c.body, got, c.want)
		}
	}
	if _, err := natsserver.Request(conn, interceptor.Subject("save", "Cups", "a"), nil); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("a store that is not selected: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := natsserver.Request(conn, interceptor.Subject("save", "Books", "a"), nil); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after Serve: %v", err)
	}
}

func exampleServer() (*nats.Conn, func()) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(kit.Limit) {
		log.Fatal("the server is not ready")
	}
	conn, err := nats.Connect(s.ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		log.Fatal(err)
	}
	return conn, func() { conn.Close(); s.Shutdown(); s.WaitForShutdown() }
}

func ExampleServe() {
	conn, stop := exampleServer() // of belfry's bus: nats.Connect("nats://127.0.0.1:4222")
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error)
	go func() {
		done <- interceptor.Serve(ctx, conn, interceptor.Spec{
			Name: "moderation", Ops: []string{"save", "update"}, Stores: []string{"Books"},
			Handler: func(_ context.Context, r interceptor.Request) interceptor.Response {
				o, err := object.Parse(r.Object)
				if err != nil {
					return interceptor.Refuse(400, err.Error())
				}
				if title, _ := o.Text("title"); title == "" {
					return interceptor.Refuse(400, "a book needs a title")
				}
				return interceptor.Allow()
			},
		})
	}()

	// What belfry does before it saves a book.
	var reply *nats.Msg
	var err error
	for reply == nil {
		reply, err = conn.Request(interceptor.Subject("save", "Books", "moderation"), []byte(`{"op":"save","store":"Books","object":{"pages":300}}`), time.Minute)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(string(reply.Data))
	cancel()
	fmt.Println(<-done)
	// Output:
	// {"refuse":{"status":400,"message":"a book needs a title"}}
	// <nil>
}

func ExampleAmend() {
	r := interceptor.Amend(object.Object{"approved": []byte("false")})
	fmt.Println(string(r.Amend["approved"]))
	// Output: false
}

func ExampleRefuse() {
	r := interceptor.Refuse(403, "the library is closed")
	fmt.Println(r.Refuse.Status, r.Refuse.Message)
	// Output: 403 the library is closed
}
