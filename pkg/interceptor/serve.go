package interceptor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
)

// Handler handles one request. Its context is that of Serve. A panic is a failure
// of the interceptor for that request.
type Handler func(ctx context.Context, r Request) Response

// Spec defines an interceptor. Name and Handler are required.
type Spec struct {
	Name string // as in the configuration of belfry

	// Ops and Stores select the requests; an empty list selects all. Requests of
	// one operation and store are handled one at a time; processes that serve the
	// same name share them.
	Ops    []string
	Stores []string

	Handler Handler
}

var token = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func (s Spec) validate() error {
	if s.Handler == nil {
		return errs.New(errs.Invalid, "interceptor %s needs a handler", s.Name)
	}
	for what, names := range map[string][]string{"name of an interceptor": {s.Name}, "operation": s.Ops,
		"name of a store": s.Stores} {
		for _, name := range names {
			if !token.MatchString(name) {
				return errs.New(errs.Invalid, "%q is not the %s", name, what)
			}
		}
	}
	return nil
}

// Serve replies to requests until ctx ends, and returns once those in flight are
// completed. It does not close the connection. It reports errs.Invalid for a spec
// that can't work, and errs.Unavailable when the bus can't be reached.
func Serve(ctx context.Context, conn *nats.Conn, spec Spec) (err error) {
	if err := spec.validate(); err != nil {
		return err
	}
	var subs []*nats.Subscription
	defer func() {
		for _, sub := range subs {
			err = errors.Join(err, drain(sub))
		}
	}()
	for _, op := range orAll(spec.Ops) {
		for _, store := range orAll(spec.Stores) {
			sub, err := conn.QueueSubscribe(Subject(op, store, spec.Name), "interceptor-"+spec.Name, func(m *nats.Msg) {
				serve(ctx, m, spec.Handler)
			})
			if err != nil {
				return errs.Wrap(err, errs.Unavailable, "interceptor %s can't subscribe", spec.Name)
			}
			subs = append(subs, sub)
		}
	}
	if err := conn.Flush(); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the bus is unavailable")
	}
	<-ctx.Done()
	return nil
}

// drain ends a subscription and waits for its handler.
func drain(sub *nats.Subscription) error {
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	if err := sub.Drain(); err != nil {
		return err
	}
	<-closed
	return nil
}

func orAll(names []string) []string {
	if len(names) == 0 {
		return []string{"*"}
	}
	return names
}

func serve(ctx context.Context, m *nats.Msg, handler Handler) {
	reply, err := answer(ctx, m.Data, handler)
	if err == nil {
		err = m.Respond(reply)
	}
	if err != nil {
		// Without a reply the client would wait until its timeout.
		_ = m.Respond([]byte(`{}`))
	}
}

func answer(ctx context.Context, data []byte, handler Handler) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the interceptor panicked: %v", p)
		}
	}()
	var r Request
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	return json.Marshal(handler(ctx, r))
}
