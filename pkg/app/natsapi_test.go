package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/interceptor"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

const onBus = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
stores:
  Authors: {expose: {}, bus: false}
  Drafts: {}
  Open: {expose: {}}
  Papers: {expose: {restrict: {delete: true}}}
  Books:
    expose: {}
    policy: {create: "false", get: "false"}
    map: {Users: {key: user, target: books, fields: title}}
    intercept: {save: [{name: moderation, timeout: 1m}]}
`

func TestStoresOverTheBus(t *testing.T) {
	p := newPlace(t, onBus)
	a := p.start()
	defer p.stop(a)
	conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun, release := make(chan struct{}), make(chan struct{})
	p.serveInterceptor(a, "save", "Books", "moderation",
		func(_ context.Context, q interceptor.Request) interceptor.Response {
			if strings.Contains(string(q.Object), "slow") {
				close(begun)
				<-release
			}
			return interceptor.Response{Allow: true}
		})
	c := client.New(conn)
	users, books := c.Store("Users"), c.Store("Books")
	type object map[string]any
	ada, err := users.Save(t.Context(), object{"name": "Ada", "password": "secret", "idents": []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(ada.Object.Encode()); strings.Contains(text, "secret") || strings.Contains(text, "idents") {
		t.Error(text)
	}
	p.want(a, "POST", "/books", `{"title":"Emma"}`, 401)
	emma, err := books.Save(t.Context(), object{"title": "Emma", "user": ada.UUID()})
	if err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(p, func() error { // the mapping follows
		user, err := users.Get(t.Context(), ada.UUID())
		if err == nil && !strings.Contains(string(user.Object["books"]), emma.UUID()) {
			err = fmt.Errorf("%s", user.Object.Encode())
		}
		return err
	})
	for _, name := range []string{"Authors", "Idents", "Sessions", "Tokens", "Contents", "Requests", "LogPositions",
		"SealKeys"} {
		if _, err := natsserver.Request(conn, "store."+name+".get", []byte(`{"uuid":"x"}`)); !errors.Is(err,
			nats.ErrNoResponders) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := p.logged.String(); !strings.Contains(text, "every client of the bus has full access") ||
		!strings.Contains(text, "Books, Drafts, Papers, Users") {
		t.Error(text)
	}

	// Requests in flight are answered before the connection is closed.
	answered := make(chan error, 1)
	go func() {
		_, err := books.Save(context.Background(), object{"title": "slow"})
		answered <- err
	}()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop(context.Background()) }()
	var limit time.Duration // grows: what is sent meanwhile may be lost
	kit.WaitUntil(p, func() error {
		limit += time.Second
		if _, err := conn.Request("store.Books.get", []byte(`{"uuid":"x"}`), limit); !errors.Is(err,
			nats.ErrNoResponders) {
			return fmt.Errorf("still served: %w", err)
		}
		return nil
	})
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}

	// A key is known after a restart.
	a = p.start()
	conn, err = nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	users = client.New(conn).Store("Users")
	first, err := users.Save(t.Context(), object{"name": "Eve"}, client.WithKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := users.Save(t.Context(), object{"name": "Bob"}, client.WithKey("k")); !errors.Is(err, errs.Conflict) {
		t.Error(err)
	}
	again, err := users.Save(t.Context(), object{"name": "Eve"}, client.WithKey("k"))
	if err != nil || !again.Object.Equal(first.Object) || again.Revision != first.Revision {
		t.Errorf("%+v, %+v, %v", first, again, err)
	}
}
