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
	"belfry/pkg/natsapi/wire"
	"belfry/pkg/problem"
	"belfry/pkg/store"
)

// outcome is what a request is answered.
type reply struct {
	status int    // of a fault, in numbers of HTTP; 0: none
	text   string // of a fault
	body   []byte
	retry  string // of a fault: seconds
}

// message is the answer as it is sent.
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

// faultOf is what an error means to who asked. The details of a fault of ours
// are in the log alone.
func problemReply(err error, id string) reply {
	kind := errs.KindOf(err)
	name := problem.Of(kind)
	f := wire.Problem{Type: problem.TypePrefix + name.Type, Title: name.Title, Status: name.Status}
	var e *errs.Error
	switch {
	case kind == errs.Internal:
		f.Detail = "the fault is on this side; the log has the details under request " + id
	case errors.As(err, &e):
		f.Detail, f.Errors = e.Message, e.Fields
	case kind == errs.Canceled:
		f.Detail = "the request took too long, or belfry is stopping; ask again"
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

// maxLine bounds the header that describes a fault, in bytes; the body has all.
const maxHeaderText = 1024

// line is a text as a header can have it.
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

// encodeObject is the body about an object, at most limit bytes; the object is
// left out of one that would have more.
func encodeObject(o store.Stored, limit int) []byte {
	if len(o.Body)+64 > limit {
		return fmt.Appendf(nil, `{"objectOmitted":true,"revision":%d}`, o.Revision)
	}
	return fmt.Appendf(nil, `{"object":%s,"revision":%d}`, o.Body, o.Revision)
}

// final reports whether a fault would be the same if the request were made once
// more in the same state of things, so that it is the answer.
func isFinal(err error) bool {
	if errors.Is(err, store.ErrContended) || errors.Is(err, store.ErrStaleRevision) {
		return false
	}
	switch errs.KindOf(err) {
	case errs.Internal, errs.Unavailable, errs.Canceled, errs.Limited:
		return false
	default:
		return true
	}
}

// inObject moves pointers into the object to where it is in the request.
func underObject(err error) error {
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	moved := *e
	moved.Fields = make([]errs.Field, len(e.Fields))
	for i, f := range e.Fields {
		moved.Fields[i] = errs.Field{Pointer: "/object" + f.Pointer, Message: f.Message}
	}
	return &moved
}

// within names the time that was too short.
func explainTimeout(ctx context.Context, err error, limit time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && errs.KindOf(err) == errs.Canceled {
		return errs.Wrap(err, errs.Canceled, "the request was not done within %s; ask again", limit)
	}
	return err
}
