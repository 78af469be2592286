package intercept

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
)

// Func decides about one operation.
type Func func(ctx context.Context, q Request) Response

// Serve handles the requests to an interceptor until ctx ends. op and store may be
// "*". Processes that serve the same name share the requests. A panic counts as a
// failure of the interceptor.
func Serve(ctx context.Context, conn *nats.Conn, op, store, name string, decide Func) error {
	sub, err := conn.QueueSubscribe(Subject(op, store, name), "interceptor-"+name, func(m *nats.Msg) {
		reply, err := respond(ctx, m.Data, decide)
		if err == nil {
			err = m.Respond(reply)
		}
		if err != nil {
			// Without a reply the client would wait for the timeout.
			_ = m.Respond([]byte(`{}`))
		}
	})
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "intercept: subscribing as %s failed", name)
	}
	if err := conn.Flush(); err != nil {
		return errs.Wrap(err, errs.Unavailable, "intercept: the bus is unavailable")
	}
	<-ctx.Done()
	return sub.Drain()
}

func respond(ctx context.Context, data []byte, decide Func) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("intercept: the handler panicked: %v", p)
		}
	}()
	var q Request
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	return json.Marshal(decide(ctx, q))
}
