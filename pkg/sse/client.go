package sse

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/errs"
)

// Client is who listens.
type Client struct {
	Want
	Address string

	// Begin is called once the client may listen, before anything is sent.
	Begin func()

	// Send sends bytes to the client at once. After an error it is not called
	// again.
	Send func(data []byte) error

	// Identify says on whose behalf the client listens, anew each time it is
	// called. It reports errs.Unauthenticated when that has ended, which ends
	// the stream, and errs.Unavailable when it can't be said now.
	Identify func(ctx context.Context) (*Viewer, error)

	// Stop ends the stream: the server stops.
	Stop <-chan struct{}
}

// readyWithin is how long the first client waits for the log to be found.
const readyWithin = 3 * time.Second

// Check reports errs.Invalid for what can't be heard.
func (h *Hub) Check(w Want) error {
	_, err := h.check(w)
	return err
}

// Serve sends a client the events that it asks for and may see, until it goes
// or has to. An error means that it was sent nothing, not even Begin:
// errs.Invalid, errs.Limited, errs.Unavailable, errs.Unauthenticated.
func (h *Hub) Serve(ctx context.Context, c Client) error {
	s := &stream{hub: h, Client: c}
	var err error
	if s.selection, err = h.check(c.Want); err != nil {
		return err
	}
	if s.viewer, err = c.Identify(ctx); err != nil {
		return err
	}
	leave, err := h.admit(c.Address)
	if err != nil {
		return err
	}
	defer leave()
	h.tail.ensure()
	if err := h.tail.ready(ctx, readyWithin); errors.Is(err, errs.Denied) {
		// Nobody but who runs belfry can do anything about it: the log says what.
		return errs.Wrap(err, errs.Unavailable, "events can't be heard here: belfry lacks a right on the bus, which its log names")
	}
	c.Begin()
	s.run(ctx)
	return nil
}
