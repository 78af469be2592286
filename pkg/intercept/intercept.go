// Package intercept asks programs on the bus before an act of a client takes
// place: they allow it, refuse it, or amend its object.
//
// An interceptor answers requests on intercept.<op>.<store>.<name>. Several
// are asked one after the other, in the order of the configuration, each with
// its time; the object that one has amended is what the next one sees. One that
// does not answer in time, is not there, or answers what can't be understood
// has failed, and the configuration says whether that refuses or allows.
package intercept

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Question is the body of a request to an interceptor.
type Request struct {
	Op            string          `json:"op"` // save, update, delete, get, register
	Store         string          `json:"store"`
	UUID          string          `json:"uuid"`
	Object        json.RawMessage `json:"object,omitempty"`        // as it would be stored
	Stored        json.RawMessage `json:"stored,omitempty"`        // as it is
	StoredOmitted bool            `json:"storedOmitted,omitempty"` // it was too large
	Datas         json.RawMessage `json:"datas,omitempty"`         // of register
	Actor         *string         `json:"actor"`                   // uuid of the user who acts, or null
	Ctx           event.Ctx       `json:"ctx"`
}

// Answer is the body of a reply: exactly one of its fields is set.
type Response struct {
	Allow  bool          `json:"allow,omitempty"`
	Refuse *Refusal      `json:"refuse,omitempty"`
	Amend  object.Object `json:"amend,omitempty"` // a merge patch (RFC 7396)
}

// Refusal is what the client is told.
type Refusal struct {
	Status  int    `json:"status,omitempty"` // of HTTP, 400 to 499; 0: 403
	Message string `json:"message"`
}

// Subject is where an interceptor is asked.
func Subject(op, store, name string) string { return "intercept." + op + "." + store + "." + name }

// Rule is one interceptor of an operation.
type Rule struct {
	Name     string
	Timeout  time.Duration
	FailOpen bool // its failure allows
}

// Asker asks the interceptors of one store. It is safe for concurrent use.
type Chain struct {
	conn  *nats.Conn
	rules map[string][]Rule // by operation
	log   *slog.Logger
}

// NewAsker makes an asker for the operations that have rules.
func NewChain(conn *nats.Conn, rules map[string][]Rule, log *slog.Logger) *Chain {
	return &Chain{conn: conn, rules: rules, log: log}
}

var _ store.Interceptor = (*Chain)(nil)

// Intercept implements store.Interceptor.
func (a *Chain) Intercept(ctx context.Context, q store.InterceptRequest) (patch object.Object, err error) {
	asked := Request{
		Op: q.Op, Store: q.Store, UUID: q.UUID, Object: q.Object, Stored: q.Stored, Datas: q.Datas,
		Actor: q.Call.Actor, Ctx: q.Call.Ctx,
	}
	asked.Ctx.Wait = "" // between belfry and its workers
	for _, rule := range a.rules[q.Op] {
		answer, err := a.ask(ctx, rule, asked)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			if !rule.FailOpen {
				return nil, failure(rule, err)
			}
			a.log.Warn("an interceptor has failed, which allows", "interceptor", rule.Name, "op", q.Op, "store", q.Store, "error", err)
			continue
		}
		if answer.Refuse != nil {
			return nil, answer.Refuse.err()
		}
		if len(answer.Amend) == 0 {
			continue
		}
		if patch, err = mergePatches(patch, answer.Amend, &asked); err != nil {
			return nil, err
		}
	}
	return patch, nil
}

// together adds a patch to those before it, and shows the next interceptor the
// object with it.
func mergePatches(before, next object.Object, asked *Request) (object.Object, error) {
	if len(asked.Object) > 0 {
		o, err := object.Decode(asked.Object)
		if err != nil {
			return nil, err
		}
		if o, err = object.MergePatch(o, next); err != nil {
			return nil, err
		}
		asked.Object = o.Encode()
	}
	if before == nil {
		return next, nil
	}
	// One patch after the other is not one merged patch where nested objects
	// meet a null: what the last one says of a field counts.
	return before.Merge(next), nil
}

// room is what a request may have besides its object.
const maxOverhead = 8 << 10

func (a *Chain) ask(ctx context.Context, rule Rule, q Request) (Response, error) {
	var answer Response
	body, err := json.Marshal(q)
	if err != nil {
		return answer, err
	}
	if int64(len(body)) > a.conn.MaxPayload()-maxOverhead {
		q.Stored, q.StoredOmitted = nil, true
		if body, err = json.Marshal(q); err != nil {
			return answer, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, rule.Timeout)
	defer cancel()
	reply, err := a.conn.RequestWithContext(ctx, Subject(q.Op, q.Store, rule.Name), body)
	if err != nil {
		return answer, err
	}
	o, err := object.Parse(reply.Data)
	if err != nil {
		return answer, errs.Wrap(err, errs.Invalid, "the answer can't be read")
	}
	return answer, answer.read(o)
}

// read reads an answer, strictly: half of one is none.
func (a *Response) read(o object.Object) error {
	if err := json.Unmarshal(o.Encode(), a); err != nil {
		return errs.New(errs.Invalid, "the answer has not the form of one")
	}
	given := 0
	for _, one := range []bool{a.Allow, a.Refuse != nil, a.Amend != nil} {
		if one {
			given++
		}
	}
	if given != 1 {
		return errs.New(errs.Invalid, "the answer must be one of allow, refuse and amend")
	}
	if a.Refuse != nil && a.Refuse.Status != 0 && (a.Refuse.Status < 400 || a.Refuse.Status > 499) {
		return errs.New(errs.Invalid, "the answer refuses with status %d, which is none from 400 to 499", a.Refuse.Status)
	}
	return nil
}

// failure is what a client is told of an interceptor that has failed.
func failure(rule Rule, err error) error {
	why := "gave no answer that can be understood"
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		why = "is not there"
	case errors.Is(err, context.DeadlineExceeded):
		why = "did not answer within " + rule.Timeout.String()
	}
	return errs.Wrap(err, errs.Unavailable, "the interceptor %s, which has to allow this, %s", rule.Name, why)
}

// kinds are belfry's own words for the statuses of refusals.
var kindOfStatus = map[int]errs.Kind{
	0: errs.Denied, 401: errs.Unauthenticated, 403: errs.Denied, 404: errs.NotFound, 409: errs.Conflict,
	412: errs.Mismatch, 413: errs.TooLarge, 415: errs.Unsupported, 429: errs.Limited,
}

// err is the refusal as an error.
func (r *Refusal) err() error {
	kind, known := kindOfStatus[r.Status]
	if !known {
		kind = errs.Invalid
	}
	message := r.Message
	if message == "" {
		message = "an interceptor refuses this"
	}
	return errs.New(kind, "%s", message)
}
