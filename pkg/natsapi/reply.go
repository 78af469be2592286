package natsapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"belfry/pkg/errs"
	"belfry/pkg/problem"
	"belfry/pkg/store"
	"belfry/pkg/wire"
)

// reply is the reply to a request: a body, or a problem.
type reply struct {
	status int    // of a problem, an HTTP status; 0: success
	text   string // of a problem
	body   []byte
	retry  string // of a problem, in seconds
}

// message returns the reply as a message.
func (o reply) message() *nats.Msg {
	m := &nats.Msg{Data: o.body}
	if o.status != 0 {
		m.Header = nats.Header{
			micro.ErrorCodeHeader: []string{strconv.Itoa(o.status)},
			micro.ErrorHeader:     []string{o.text},
		}
		if o.retry != "" {
			m.Header.Set(wire.HeaderRetryAfter, o.retry)
		}
	}
	return m
}

// problemReply returns the reply for an error. Only the log has the details of an
// internal error.
func problemReply(err error, id string) reply {
	kind := errs.KindOf(err)
	name := problem.Of(kind)
	f := wire.Problem{Type: problem.TypePrefix + name.Type, Title: name.Title, Status: name.Status}
	var e *errs.Error
	switch {
	case kind == errs.Internal:
		f.Detail = "internal error; the server's log has the details under request " + id
	case errors.As(err, &e):
		f.Detail, f.Errors = e.Message, e.Fields
		if e.At != nil {
			f.Revision, f.OnlyWorkers = e.At.Now, &e.At.OnlyWorkers
		}
	case kind == errs.Canceled:
		f.Detail = "the request took too long, or belfry is stopping; try again"
	}
	o := reply{status: f.Status, text: headerText(f.Detail), body: bytes.TrimRight(problem.Encode(f), "\n")}
	if o.text == "" {
		o.text = f.Title
	}
	if kind == errs.Limited || kind == errs.Unavailable || kind == errs.Canceled {
		o.retry = problem.RetryAfter(err)
	}
	return o
}

// maxHeaderText limits the header that describes a problem, in bytes; the body has
// the whole text.
const maxHeaderText = 1024

// headerText returns a text as a valid header value.
func headerText(text string) string {
	if len(text) > maxHeaderText {
		text = text[:maxHeaderText]
	}
	text = strings.ToValidUTF8(text, "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
}

// encodeObject returns the body with an object, at most limit bytes: a larger object
// is omitted.
func encodeObject(o store.Stored, limit int) []byte {
	if len(o.Body)+64 > limit {
		return fmt.Appendf(nil, `{"objectOmitted":true,"revision":%d}`, o.Revision)
	}
	return fmt.Appendf(nil, `{"object":%s,"revision":%d}`, o.Body, o.Revision)
}

// underObject changes pointers into the object to pointers into the request.
func underObject(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	moved := *e
	moved.Fields = make([]errs.Field, len(e.Fields))
	for i, f := range e.Fields {
		moved.Fields[i] = errs.Field{Pointer: "/object" + f.Pointer, Message: f.Message, Keyword: f.Keyword}
	}
	return &moved
}

// explainTimeout adds the timeout to the error of a request that exceeded it.
func explainTimeout(ctx context.Context, err error, limit time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errs.KindOf(err) == errs.Canceled {
		return errs.Wrap(err, errs.Canceled, "the request was not executed within %s; try again", limit)
	}
	return err
}
