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

// compare reads the state before the bus. The other way round, another process could store what it reads later
// in between, and the log would seem to have lost its end.
func (w *Watch) compare(ctx context.Context) error {
	s, err := w.read(ctx)
	if err != nil {
		return err
	}
	o, err := w.observe(ctx)
	if err != nil {
		return err
	}
	before := s.clone()
	found := s.observe(o)
	renewed := s.renew(w.instance, o.at)
	if err := w.keep(ctx, s, len(found) > 0 || renewed || s.differs(before)); err != nil {
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
	if !leads(info.Cluster) {
		return o, errs.New(errs.Unavailable, "the server that replied for the log does not reach most of the others, so it may lead no more")
	}
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

// electionMin is the shortest time without word from a leader until the other servers elect one.
const electionMin = 4 * time.Second

// leads reports whether the leader of a log still is the leader: most servers have replied to it within less time than
// they need to elect another one. A leader that was cut off replies for a while with what it had, while the others
// go on: the log would seem to have lost its end.
func leads(c *jetstream.ClusterInfo) bool {
	if c == nil || len(c.Replicas) == 0 {
		return true
	}
	reached := 1
	for _, peer := range c.Replicas {
		if !peer.Offline && peer.Active < electionMin {
			reached++
		}
	}
	return 2*reached > len(c.Replicas)+1
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

// stored is the state as it was read.
type stored struct {
	state
	revision uint64 // 0: there is none
}

func (w *Watch) read(ctx context.Context) (*stored, error) {
	s := &stored{}
	o, err := w.opts.Store.Get(ctx, stateUUID)
	switch {
	case errors.Is(err, errs.NotFound):
		return s, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(object.Field(o.Body, stateField), &s.state); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the stored positions of listeners can't be read")
	}
	s.revision = o.Revision
	return s, nil
}

// keep makes a state the current one of this process, and stores it if it has changed. The error is errs.Mismatch or
// errs.Exists if another process has stored one since it was read.
func (w *Watch) keep(ctx context.Context, s *stored, changed bool) error {
	if changed {
		data, err := json.Marshal(s.state)
		if err != nil {
			return err
		}
		fields := object.Object{stateField: data}
		if s.revision == 0 {
			_, err = w.opts.Store.Save(ctx, fields, stateUUID)
		} else {
			_, err = w.opts.Store.Update(ctx, fields, store.UpdateOptions{UUID: stateUUID, If: s.revision})
		}
		if err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = *s.clone()
	return nil
}

// change reads the state, changes it, and stores it if change returns true. It fails as keep does.
func (w *Watch) change(ctx context.Context, change func(*state) bool) (*state, error) {
	s, err := w.read(ctx)
	if err != nil {
		return nil, err
	}
	changed := change(&s.state)
	return &s.state, w.keep(ctx, s, changed)
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
