package sse

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/errs"
)

// Client is a client of a stream.
type Client struct {
	Subscription
	Address string

	// Begin is called once the client is admitted, before anything is sent.
	Begin func()

	// Send sends bytes without buffering. It is not called again after an error.
	Send func(data []byte) error

	// Identify authenticates the client, again each time it is called. It reports errs.Unauthenticated when its session
	// has ended, which ends the stream, and errs.Unavailable when that can't be determined now.
	Identify func(ctx context.Context) (*Viewer, error)

	// Stop ends the stream because the server stops.
	Stop <-chan struct{}
}

// readyTimeout is how long the first client waits for the reader to find the log.
const readyTimeout = 3 * time.Second

// Validate reports errs.Invalid for stores and events that are not streamed.
func (h *Hub) Validate(s Subscription) error {
	_, err := h.filter(s)
	return err
}

// Serve sends a client the events that it subscribes to and may receive, until it
// disconnects or is disconnected. After an error nothing has been sent, and Begin was not
// called: errs.Invalid, errs.Limited, errs.Unavailable, errs.Unauthenticated.
func (h *Hub) Serve(ctx context.Context, c Client) error {
	s := &stream{hub: h, Client: c}
	var err error
	if s.filter, err = h.filter(c.Subscription); err != nil {
		return err
	}
	if s.viewer, err = c.Identify(ctx); err != nil {
		return err
	}
	if err := h.Authorize(ctx, c.Subscription, s.viewer); err != nil {
		return err
	}
	s.checkRights()
	s.allowance = h.costs.of(s.viewer, c.Address, time.Now())
	release, err := h.admit(c.Address)
	if err != nil {
		return err
	}
	defer release()
	if s.parsed != nil {
		s.objects = h.filters.use(c.Filter, s.parsed)
		defer h.filters.release(c.Filter)
	}
	h.reader.start()
	if err := h.reader.ready(ctx, readyTimeout); errors.Is(err, errs.Denied) {
		// Only an operator can change that: the log has the reason.
		return errs.Wrap(err, errs.Unavailable,
			"events are not available: belfry lacks a permission on the bus, which its log names")
	}
	c.Begin()
	s.run(ctx)
	return nil
}
