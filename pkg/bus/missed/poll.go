package missed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// poll compares the bus with the state, and starts a repair that is due. While the bus
// or the store is unavailable it does nothing.
func (w *Watch) poll(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	err := w.compare(limited)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		w.failed = ""
		w.startRepair(ctx)
	case errors.Is(err, errs.Mismatch), errors.Is(err, errs.Exists):
		// Another process has stored what it read. The next poll reads that.
	case err.Error() != w.failed:
		w.failed = err.Error()
		w.log.Warn("the positions of listeners can't be compared with the log; retrying", "error", err)
	}
}

func (w *Watch) compare(ctx context.Context) error {
	o, err := w.observe(ctx)
	if err != nil {
		return err
	}
	var found []string
	_, err = w.change(ctx, func(s *state) bool {
		before := s.clone()
		found = s.observe(o)
		renewed := s.renew(w.instance, o.at)
		return len(found) > 0 || renewed || s.differs(before)
	})
	if err != nil {
		return err
	}
	w.report(found)
	return nil
}

// report logs what was noticed.
func (w *Watch) report(found []string) {
	slices.Sort(found)
	for _, s := range w.Missed() {
		if !slices.Contains(found, s.Consumer) {
			continue
		}
		args := []any{"listener", s.Consumer, "reason", s.Reason, "events", s.Count(), "since", s.Since}
		if slices.Contains(w.opts.Repaired, s.Consumer) {
			w.log.Error("events left the log before a listener had handled them; what it maintains is repaired", args...)
		} else {
			w.log.Error("events left the log before a listener had handled them; see `belfry listener list`", args...)
		}
	}
}

// Count says how many events are missed: "at most 12", "at least 3".
func (m *Missed) Count() string {
	if m.AtLeast {
		return fmt.Sprintf("at least %d", m.Events)
	}
	return fmt.Sprintf("at most %d", m.Events)
}

// observe reads the log, and then its consumers: what is not pending there was handled
// if it was in the log before.
func (w *Watch) observe(ctx context.Context) (observation, error) {
	o := observation{consumers: map[string]consumer{}}
	log, err := w.opts.Bus.JetStream().Stream(ctx, bus.StreamEvents)
	if err != nil {
		return o, errs.Wrap(err, errs.Unavailable, "the log can't be read")
	}
	info := log.CachedInfo()
	o.at, o.log, o.first, o.last = time.Now().UTC(), info.Created, info.State.FirstSeq, info.State.LastSeq
	if o.first == 0 { // of a log that never had an event
		o.first = 1
	}
	limited, done := w.opts.Bus.UntilDenied(ctx, listConsumers)
	defer done()
	list := log.ListConsumers(limited)
	for c := range list.Info() {
		if !slices.Contains(w.opts.Ignored, c.Name) {
			o.add(c)
		}
	}
	if list.Err() == nil {
		return o, nil
	}
	if !errors.Is(context.Cause(limited), bus.ErrPermissionDenied) {
		return o, errs.Wrap(list.Err(), errs.Unavailable, "the listeners can't be read")
	}
	o.partial = true
	for _, name := range w.opts.BuiltIn {
		c, err := log.Consumer(ctx, name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue
		}
		if err != nil {
			return o, errs.Wrap(err, errs.Unavailable, "listener %s can't be read", name)
		}
		o.add(c.CachedInfo())
	}
	return o, nil
}

// listConsumers is the subject of requests for all consumers of the log.
const listConsumers = jetstream.DefaultAPIPrefix + "CONSUMER.LIST." + bus.StreamEvents

func (o *observation) add(c *jetstream.ConsumerInfo) {
	if c.Config.Durable != "" {
		o.consumers[c.Name] = consumer{floor: c.AckFloor.Stream, pending: c.NumPending + uint64(c.NumAckPending)}
	}
}

// The object that holds the state, and its field.
const (
	stateUUID  = bus.StreamEvents
	stateField = "state"
)

// change reads the state, changes it, and stores it if change returns true. The error is
// errs.Mismatch or errs.Exists if another process has stored it in the meantime.
func (w *Watch) change(ctx context.Context, change func(*state) bool) (*state, error) {
	s := &state{}
	stored, err := w.opts.Store.Get(ctx, stateUUID)
	missing := errors.Is(err, errs.NotFound)
	switch {
	case err != nil && !missing:
		return nil, err
	case !missing:
		if err := json.Unmarshal(object.Field(stored.Body, stateField), s); err != nil {
			return nil, errs.Wrap(err, errs.Internal, "the stored positions of listeners can't be read")
		}
	}
	if change(s) {
		data, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		fields := object.Object{stateField: data}
		if missing {
			_, err = w.opts.Store.Save(ctx, fields, stateUUID)
		} else {
			_, err = w.opts.Store.Update(ctx, fields, store.UpdateOptions{UUID: stateUUID, If: stored.Revision})
		}
		if err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = *s.clone()
	return s, nil
}

func (s *state) clone() *state {
	c := *s
	c.Consumers = make(map[string]*position, len(s.Consumers))
	for name, p := range s.Consumers {
		q := *p
		if p.Missed != nil {
			m := *p.Missed
			q.Missed = &m
		}
		c.Consumers[name] = &q
	}
	if s.Repair != nil {
		r := *s.Repair
		c.Repair = &r
	}
	return &c
}

// differs reports whether a state is to be stored: when more than times have changed,
// and now and then.
func (s *state) differs(before *state) bool {
	if !s.Log.Equal(before.Log) || s.Last != before.Last || len(s.Consumers) != len(before.Consumers) ||
		s.Read.Sub(before.Read) >= idleRefresh {
		return true
	}
	for name, p := range s.Consumers {
		b := before.Consumers[name]
		if b == nil || p.Done != b.Done || p.Pending != b.Pending || p.Gone.IsZero() != b.Gone.IsZero() {
			return true
		}
	}
	return false
}
