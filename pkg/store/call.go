package store

import (
	"context"
	"log/slog"
	"sync"

	"belfry/internal/logctx"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// Call says on whose behalf a store is used. The context carries it. A context
// without one means the program itself: origin "go", no restrictions of
// clients, no actor.
type Call struct {
	// Client applies the restrictions of clients to the call: policies, and fields
	// that only the server sets or sees.
	Client bool

	// Trusted exempts a client from policies and lets it set read-only fields,
	// where another layer authorizes it: the permissions of the bus, for instance.
	Trusted bool

	// NoGet says that this client's way in offers no get of the store: replies to its
	// writes have the uuid and the revision alone.
	NoGet bool

	User        object.Object   // the user who is logged in; nil for none
	Session     *policy.Session // theirs, for rules; nil for none
	RuleBudget  *policy.Budget  // of the request, for evaluating rules; nil: none
	Origin      string          // goes into events; see the constants of package event
	Actor       *string         // uuid of the acting user, for events; derived from User when nil
	Ctx         event.Ctx       // goes into events
	Idempotency *Idempotency    // the write may be repeated; nil: it is not
}

// caller returns the part of a call that the rules of a store see.
func (c Call) caller() access.Caller {
	return access.Caller{
		Client: c.Client, Trusted: c.Trusted, NoGet: c.NoGet, User: c.User, Session: c.Session, Budget: c.RuleBudget,
	}
}

type callKey struct{}

// callContext carries a Call, its attributes in the log, and what its rules have read.
type callContext struct {
	context.Context
	call   Call
	linked LinkedObjects
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	switch key.(type) {
	case callKey:
		return &c.call
	case linkedKey:
		return &c.linked
	case logctx.Key:
		return c
	}
	return c.Context.Value(key)
}

// LogAttrs implements logctx.Source: the request, its actor and its trace.
func (c *callContext) LogAttrs() []slog.Attr {
	attrs := logctx.Attrs(c.Context)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("request", c.call.Ctx.Request)
	if c.call.Actor != nil {
		add("actor", *c.call.Actor)
	}
	add("trace", c.call.Ctx.Trace)
	return attrs
}

// WithCall returns a context that carries the call. Rules read linked objects again.
func WithCall(ctx context.Context, c Call) context.Context {
	if c.Actor == nil && c.User != nil {
		if uuid, ok := c.User.Text("uuid"); ok {
			c.Actor = &uuid
		}
	}
	return &callContext{Context: ctx, call: c}
}

// CallOf returns the call that a context carries.
func CallOf(ctx context.Context) Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return *c
	}
	return Call{Origin: event.OriginGo}
}

// Cause identifies the durable event of a write.
type Cause struct {
	ID     string     `json:"id"`
	Event  event.Name `json:"event"`
	Store  string     `json:"store"`
	Origin string     `json:"origin"`
}

// Causes collects the events of the writes made under a context, so that their
// consequences can be awaited.
type Causes struct {
	mu  sync.Mutex
	all []Cause
}

type causesKey struct{}

// WithCauses returns a context that collects the events of its writes.
func WithCauses(ctx context.Context) (context.Context, *Causes) {
	c := &Causes{}
	return context.WithValue(ctx, causesKey{}, c), c
}

// All returns the events collected so far.
func (c *Causes) All() []Cause {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Cause(nil), c.all...)
}

func addCause(ctx context.Context, cause Cause) {
	if c, ok := ctx.Value(causesKey{}).(*Causes); ok {
		c.mu.Lock()
		c.all = append(c.all, cause)
		c.mu.Unlock()
	}
}
