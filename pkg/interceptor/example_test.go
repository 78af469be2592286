package interceptor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/interceptor"
	"belfry/pkg/object"
	"belfry/test/kit/natsserver"
)

// A program that refuses books without a title.
func Example() {
	conn, stop := natsserver.Example() // of belfry's bus: nats.Connect("nats://127.0.0.1:4222")
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
		reply, err = conn.Request(interceptor.Subject("save", "Books", "moderation"),
			[]byte(`{"op":"save","store":"Books","object":{"pages":300}}`), time.Minute)
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
