package intercept

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
)

// Func judges one act.
type Func func(ctx context.Context, q Request) Response

// Serve answers as an interceptor until ctx ends. op and store may be "*".
// Processes that serve the same name share the questions. A panic answers
// nothing, and counts as a failure.
func Serve(ctx context.Context, conn *nats.Conn, op, store, name string, judge Func) error {
	sub, err := conn.QueueSubscribe(Subject(op, store, name), "interceptor-"+name, func(m *nats.Msg) {
		answer, err := respond(ctx, m.Data, judge)
		if err == nil {
			err = m.Respond(answer)
		}
		if err != nil {
			// Silence would cost the client the whole time that it may take.
			_ = m.Respond([]byte(`{}`))
		}
	})
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "the bus takes no interceptor %s", name)
	}
	if err := conn.Flush(); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the bus is away")
	}
	<-ctx.Done()
	return sub.Drain()
}

func respond(ctx context.Context, data []byte, judge Func) (answer []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the interceptor panicked: %v", p)
		}
	}()
	var q Request
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, err
	}
	return json.Marshal(judge(ctx, q))
}
