package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/pkg/interceptor"
	"belfry/pkg/store/object"
	"belfry/test/kit"
)

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

// A program that refuses books without a title.
func Example() {
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
