// Package client uses stores of a belfry over the bus: the same operations as
// docs/reference/bus.md describes, for programs in Go.
//
// Errors are of package errs, with the server's text and the fields at fault.
//
// Every write has an idempotency key: a new one, or that of WithKey. So a request
// without a reply is repeated until the context ends, and takes effect once. A
// program that may crash in between sets a key that it can compute again.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/problem"
	"belfry/pkg/wire"
)

const (
	// defaultTimeout is for a request whose context has no deadline.
	defaultTimeout = 30 * time.Second

	// defaultAttempt is the timeout of one attempt.
	defaultAttempt = 5 * time.Second

	retryMin = 25 * time.Millisecond
	retryMax = time.Second
)

// Client uses the stores of a belfry. It is safe for concurrent use.
type Client struct {
	conn *nats.Conn

	attemptTimeout time.Duration
}

// New returns a client on a connection, which the caller closes.
func New(conn *nats.Conn, opts ...InitOption) *Client {
	c := &Client{conn: conn, attemptTimeout: defaultAttempt}
	for _, set := range opts {
		set(c)
	}
	return c
}

// InitOption configures a Client.
type InitOption func(*Client)

// WithAttemptTimeout sets how long a reply is awaited before the request is
// repeated; the default is 5 seconds.
func WithAttemptTimeout(d time.Duration) InitOption {
	return func(c *Client) { c.attemptTimeout = d }
}

// Store returns a store, which need not exist.
func (c *Client) Store(name string) *Store { return &Store{client: c, name: name} }

// call repeats a request until there is a reply or its context ends.
func (c *Client) call(ctx context.Context, store, op string, body wire.Request, o options) (*wire.Reply, error) {
	if err := o.check(op); err != nil {
		return nil, err
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	data, err := encode(body)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the request can't be written as JSON")
	}
	m := &nats.Msg{Subject: wire.Subject(store, op), Data: data, Header: o.header(op)}
	var last error
	for delays := backoff.New(retryMin, retryMax); ; {
		reply, err := c.attempt(ctx, m)
		if err == nil || !errors.Is(err, errs.Unavailable) {
			return reply, err
		}
		if ctx.Err() == nil || last == nil {
			last = err // the error of an attempt that ctx ended says less than the one before
		}
		if delays.Wait(ctx) != nil {
			return nil, givenUp(ctx, last)
		}
	}
}

// encode writes JSON and leaves the text of values as it is.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// givenUp returns the error of a request that is no longer retried.
func givenUp(ctx context.Context, last error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errs.Wrap(ctx.Err(), errs.Canceled, "the request was canceled")
	}
	return last
}

// attempt makes a request once. Unavailable is transient.
func (c *Client) attempt(ctx context.Context, m *nats.Msg) (*wire.Reply, error) {
	one, cancel := context.WithTimeout(ctx, c.attemptTimeout)
	defer cancel()
	reply, err := c.conn.RequestMsgWithContext(one, m)
	switch {
	case err == nil:
		return read(reply)
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errs.Wrap(err, errs.Unavailable,
			"no responders on %s: belfry is unavailable, or does not offer this store on the bus", m.Subject)
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, errs.Wrap(ctx.Err(), errs.Canceled, "the request was canceled")
	case c.forbidden(m.Subject):
		return nil, errs.Wrap(err, errs.Denied, "the bus's user lacks the permission to publish on %s", m.Subject)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return nil, errs.Wrap(err, errs.Unavailable, "no reply on %s in time", m.Subject)
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, errs.Wrap(err, errs.TooLarge, "the request has %d bytes; the bus carries at most %d", len(m.Data),
			c.conn.MaxPayload())
	case errors.Is(err, nats.ErrConnectionClosed):
		return nil, errs.Wrap(err, errs.Canceled, "the connection to the bus has been closed")
	default:
		return nil, errs.Wrap(err, errs.Unavailable, "the bus is unavailable")
	}
}

// forbidden reports whether the server denies publishing there: it reports that to
// the connection and sends no reply to the request.
func (c *Client) forbidden(subject string) bool {
	err := c.conn.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), strconv.Quote(subject))
}

// read decodes a reply.
func read(m *nats.Msg) (*wire.Reply, error) {
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		return nil, fault(m, code)
	}
	var r wire.Reply
	if err := json.Unmarshal(m.Data, &r); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the reply on %s can't be decoded", m.Subject)
	}
	return &r, nil
}

// fault returns the error that a reply reports.
func fault(m *nats.Msg, code string) error {
	var f wire.Problem
	e := &errs.Error{Kind: errs.Internal, Message: m.Header.Get(micro.ErrorHeader)}
	if json.Unmarshal(m.Data, &f) == nil && f.Type != "" {
		e.Kind, e.Fields = problem.Kind(f.Type), f.Errors
		if f.Detail != "" {
			e.Message = f.Detail
		}
	} else {
		e.Message = code + " " + e.Message
	}
	if seconds, err := strconv.Atoi(m.Header.Get(wire.HeaderRetryAfter)); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// header returns the headers of a request.
func (o options) header(op string) nats.Header {
	h := nats.Header{}
	set := func(name, value string) {
		if value != "" {
			h.Set(textproto.CanonicalMIMEHeaderKey(name), value)
		}
	}
	if wire.IsWrite(op) {
		set(wire.HeaderKey, o.key)
	}
	set(wire.HeaderActor, o.actor)
	set(wire.HeaderTrace, o.trace)
	return h
}
