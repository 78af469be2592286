// Package intercept asks programs on the bus before an operation of a client is
// executed: they allow it, reject it, or amend its object.
//
// An interceptor replies to requests on intercept.<op>.<store>.<name>. Several are
// called in the order of the configuration, each with its own timeout; each sees the
// object as amended by those before it. An interceptor fails when it is not running,
// does not reply in time, or sends an invalid reply; the configuration says whether
// that rejects or allows the operation. A request that can't be sent because it is
// too large is never allowed.
package intercept

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/interceptor"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Rule is one interceptor of an operation.
type Rule struct {
	Name     string
	Timeout  time.Duration
	FailOpen bool // a failure allows the operation
}

// Chain calls the interceptors of one store in order. It is safe for concurrent use.
type Chain struct {
	conn  *nats.Conn
	rules map[string][]Rule // by operation
	log   *slog.Logger
}

// NewChain makes a chain from the rules of each operation.
func NewChain(conn *nats.Conn, rules map[string][]Rule, log *slog.Logger) *Chain {
	return &Chain{conn: conn, rules: rules, log: log}
}

var _ store.Interceptor = (*Chain)(nil)

// Intercept implements store.Interceptor.
func (a *Chain) Intercept(ctx context.Context, r store.InterceptRequest) (patch object.Object, err error) {
	request := interceptor.Request{
		Op: r.Op, Store: r.Store, UUID: r.UUID, Object: r.Object, Stored: r.Stored, Datas: r.Datas,
		Actor: r.Call.Actor, Ctx: r.Call.Ctx,
	}
	request.Ctx.Wait = "" // internal to belfry and its workers
	for _, rule := range a.rules[r.Op] {
		body, err := encode(request, rule.Name, r.Arrays, a.maxPayload())
		if err != nil {
			// This does not depend on the rule for failures: otherwise a caller could skip the
			// interceptors with a request that is too large.
			return nil, err
		}
		answer, err := a.ask(ctx, rule, interceptor.Subject(r.Op, r.Store, rule.Name), body)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !rule.FailOpen || errors.Is(err, nats.ErrMaxPayload) {
				return nil, failure(rule, err)
			}
			a.log.Warn("an interceptor failed; its rule allows the operation", "interceptor", rule.Name, "op", r.Op,
				"store", r.Store, "error", err)
			continue
		}
		if answer.Refuse != nil {
			return nil, refusalError(answer.Refuse)
		}
		if len(answer.Amend) == 0 {
			continue
		}
		if patch, err = mergePatches(patch, answer.Amend, &request); err != nil {
			return nil, err
		}
	}
	return patch, nil
}

// maxPayload is the size limit of a message.
func (a *Chain) maxPayload() int {
	if limit := int(a.conn.MaxPayload()); limit > 0 {
		return limit
	}
	return bus.MaxPayload // until the server has said it
}

// mergePatches adds a patch to those before it, and applies it to the object that the
// next interceptor sees.
func mergePatches(before, next object.Object, r *interceptor.Request) (object.Object, error) {
	if len(r.Object) > 0 {
		o, err := object.Decode(r.Object)
		if err != nil {
			return nil, err
		}
		if o, err = object.MergePatch(o, next); err != nil {
			return nil, err
		}
		r.Object = o.Encode()
	}
	if before == nil {
		return next, nil
	}
	// One patch after the other is not one merged patch where nested objects
	// meet a null: for each field, the last one counts.
	return before.Merge(next), nil
}

func (a *Chain) ask(ctx context.Context, rule Rule, subject string, body []byte) (interceptor.Response, error) {
	var answer interceptor.Response
	ctx, cancel := context.WithTimeout(ctx, rule.Timeout)
	defer cancel()
	reply, err := a.conn.RequestWithContext(ctx, subject, body)
	if err != nil {
		return answer, err
	}
	o, err := object.Parse(reply.Data)
	if err != nil {
		return answer, errs.Wrap(err, errs.Invalid, "the reply is not a JSON object")
	}
	return answer, decode(o, &answer)
}

// decode decodes a response and rejects one that is incomplete or ambiguous.
func decode(o object.Object, a *interceptor.Response) error {
	if err := json.Unmarshal(o.Encode(), a); err != nil {
		return errs.New(errs.Invalid, "the reply has a field of the wrong type")
	}
	given := 0
	for _, one := range []bool{a.Allow, a.Refuse != nil, a.Amend != nil} {
		if one {
			given++
		}
	}
	if given != 1 {
		return errs.New(errs.Invalid, "the reply must have exactly one of allow, refuse and amend")
	}
	if a.Refuse != nil && a.Refuse.Status != 0 && (a.Refuse.Status < 400 || a.Refuse.Status > 499) {
		return errs.New(errs.Invalid, "the reply refuses with status %d; it must be 400 to 499", a.Refuse.Status)
	}
	return nil
}

// failure returns the error that a client gets when an interceptor failed.
func failure(rule Rule, err error) error {
	why := "sent an invalid reply"
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		why = "is not running"
	case errors.Is(err, context.DeadlineExceeded):
		why = "did not reply within " + rule.Timeout.String()
	}
	return errs.Wrap(err, errs.Unavailable, "the interceptor %s must allow this operation, but %s", rule.Name, why)
}

// kindOfStatus maps the status of a refusal to a kind; others are Invalid.
var kindOfStatus = map[int]errs.Kind{
	0: errs.Denied, 401: errs.Unauthenticated, 403: errs.Denied, 404: errs.NotFound, 409: errs.Conflict,
	412: errs.Mismatch, 413: errs.TooLarge, 415: errs.Unsupported, 429: errs.Limited,
}

// refusalError returns a refusal as an error.
func refusalError(r *interceptor.Refusal) error {
	kind, known := kindOfStatus[r.Status]
	if !known {
		kind = errs.Invalid
	}
	message := r.Message
	if message == "" {
		message = "an interceptor rejected this operation"
	}
	return errs.New(kind, "%s", message)
}
