package natsapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/wire"
)

// serve handles one request and sends its reply.
func (v *service) serve(e *endpoint, m *nats.Msg, received time.Time) {
	ctx, cancel := context.WithTimeout(v.server.ctx, v.server.opts.Timeout)
	defer cancel()
	ctx, span := v.startSpan(ctx, e, m)
	id := requestID(m)
	var o reply
	var err error
	if e.of.Op == wire.List {
		var memory *pagememory.Reservation
		if o, memory, err = v.list(ctx, e, m, id); memory != nil {
			defer memory.Release()
		}
	} else {
		o, err = v.handle(ctx, e, m, id)
	}
	err = explainTimeout(ctx, err, v.server.opts.Timeout)
	v.reply(e, m, received, id, err, o)
	endSpan(span, err, o)
}

// handle waits for a slot and executes the request. A panic ends only this
// request.
func (v *service) handle(ctx context.Context, e *endpoint, m *nats.Msg, id string) (o reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.Panicked(p)
		}
	}()
	release, err := v.admission.acquire(ctx)
	if err != nil {
		return reply{}, err
	}
	defer release()
	r, err := parse(e.of, id, m)
	if err != nil {
		return reply{}, err
	}
	if r.key != "" {
		return v.idempotent(ctx, r)
	}
	body, err := r.perform(ctx, nil, v.maxReply())
	return reply{body: body}, err
}

// list executes a list, whose page is in memory until the caller releases it, if not nil.
// It waits for memory first: a request that waits for that must not take a slot from others.
func (v *service) list(ctx context.Context, e *endpoint, m *nats.Msg,
	id string) (o reply, memory *pagememory.Reservation, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.Panicked(p)
		}
	}()
	r, err := parse(e.of, id, m)
	if err != nil {
		return reply{}, nil, err
	}
	limit := v.maxReply()
	memory, err = v.server.opts.Pages.Reserve(ctx, clientOf(m),
		v.sizes.Expected(cmp.Or(r.Limit, store.DefaultPage), limit))
	if err != nil {
		return reply{}, nil, err
	}
	release, err := v.admission.acquire(ctx)
	if err != nil {
		return reply{}, memory, err
	}
	defer release()
	l, err := v.store.List(r.call(ctx, nil), store.ListOptions{
		Words: r.Words, Filter: r.Filter, Sort: r.Sort, Limit: r.Limit, Cursor: r.Cursor, Before: r.Before,
		Fields: r.Fields, Count: store.CountMode(r.Count), Explain: r.Explain, MaxBytes: min(limit, memory.Page()),
	})
	body := l.Encode("objects")
	memory.Resize(len(body))
	v.sizes.Note(len(body), len(l.Objects))
	if err == nil && len(body) > limit { // a page with nothing but a large object
		err = errs.New(errs.TooLarge,
			"the next object is %q, which makes a reply of %d bytes; the bus carries at most %d: list it over HTTP",
			l.Objects[0].UUID, len(body), limit)
	}
	return reply{body: body}, memory, err
}

// maxReply is the largest body that fits into a reply.
func (v *service) maxReply() int { return int(v.server.opts.Conn.MaxPayload()) - 4*maxHeaderText }

// perform executes a request once and returns the body of the reply, of at most
// limit bytes.
func (r *request) perform(ctx context.Context, idempotency *store.Idempotency, limit int) ([]byte, error) {
	in := r.Asked
	in.Limit = limit
	return r.of.Run(r.call(ctx, idempotency), &in)
}

// call returns the context of the call that a request makes.
func (r *request) call(ctx context.Context, idempotency *store.Idempotency) context.Context {
	call := store.Call{
		Client: true, Trusted: true, Origin: event.OriginBus,
		Ctx: event.Ctx{Request: r.id, Trace: traceOf(ctx, r.trace)}, Idempotency: idempotency,
	}
	if r.actor != "" {
		call.Actor = &r.actor
	}
	return store.WithCall(ctx, call)
}

// reply sends the reply, counts it and logs it.
func (v *service) reply(e *endpoint, m *nats.Msg, received time.Time, id string, err error, o reply) {
	if err != nil {
		o = problemReply(err, id)
	}
	took := v.server.opts.Now().Sub(received)
	e.count(o, took)
	v.server.metrics.count(v.store.Name(), e.of.Op, o.status, took)
	if m.Reply != "" {
		if sent := m.RespondMsg(o.message()); sent != nil {
			err = errors.Join(err, sent)
		}
	}
	v.log(e, id, err, o, took)
}

// slowRequest is the duration from which a request is logged at level info.
const slowRequest = time.Second

func (v *service) log(e *endpoint, id string, err error, o reply, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case err != nil && errs.KindOf(err) == errs.Internal:
		level = slog.LevelError
	case took > slowRequest:
		level = slog.LevelInfo
	}
	if !v.server.opts.Logger.Enabled(v.server.ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request", id), slog.String("store", v.store.Name()), slog.String("op", e.of.Op),
		slog.Int("status", max(o.status, 200)), slog.Duration("took", took),
	}
	v.server.opts.Logger.LogAttrs(v.server.ctx, level, "request over the bus",
		append(attrs, errs.Attributes(err)...)...)
}

// ops are the writes as package idempotent has them.
var ops = map[string]idempotent.Op{wire.Save: idempotent.Save, wire.Update: idempotent.Update,
	wire.Delete: idempotent.Delete}

// idempotent handles a request with a key.
func (v *service) idempotent(ctx context.Context, r *request) (reply, error) {
	limit := min(idempotent.MaxReply, v.maxReply())
	o, err := v.server.keyed.Do(ctx, &idempotent.Request{
		ID: idempotent.KeyID(r.key, v.store.Name()), Fingerprint: r.fingerprint(), Op: ops[r.of.Op], Store: v.store,
		UUID: r.UUID,
		Perform: func(ctx context.Context, uuid string, i *store.Idempotency) (idempotent.Reply, error) {
			chosen := *r
			chosen.UUID = uuid
			body, err := chosen.perform(ctx, i, limit)
			return idempotent.Reply{Body: body}, err
		},
		Applied: func(ctx context.Context, status store.WriteStatus) idempotent.Reply {
			if r.of.Op == wire.Delete {
				return idempotent.Reply{Body: []byte("{}")}
			}
			return idempotent.Reply{Body: encodeObject(v.store.Reply(r.call(ctx, nil), status), limit)}
		},
		Failed: func(err error) idempotent.Reply {
			p := problemReply(err, r.id)
			return idempotent.Reply{Status: p.status, Text: p.text, Body: p.body}
		},
	})
	return reply{status: o.Status, text: o.Text, body: o.Body}, err
}
