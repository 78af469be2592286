package interceptor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
	"belfry/pkg/interceptor"
	"belfry/pkg/object"
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
		done <- interceptor.Serve(ctx,
			conn, interceptor.Spec{Name: "a", Stores: []string{"Books", "Pens"},
				Handler: func(_ context.Context, r interceptor.Request) interceptor.Response {
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
	if _, err := natsserver.Request(conn, interceptor.Subject("save", "Cups", "a"), nil); !errors.Is(err,
		nats.ErrNoResponders) {
		t.Errorf("a store that is not selected: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := natsserver.Request(conn, interceptor.Subject("save", "Books", "a"), nil); !errors.Is(err,
		nats.ErrNoResponders) {
		t.Errorf("after Serve: %v", err)
	}
}
