package missed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// poll compares the bus with the state, and starts the repairs that are due. While the bus
// or the store is unavailable it does nothing.
func (w *Watch) poll(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	err := w.compare(limited)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		w.failed = ""
		w.startRepairs(ctx)
	case errors.Is(err, errs.Mismatch), errors.Is(err, errs.Exists):
		// Another process has stored its reading. The next poll reads that.
	case err.Error() != w.failed:
		w.failed = err.Error()
		w.log.Warn("the positions of listeners can't be compared with the log; retrying", "error", err)
	}
}

// compare reads the state before the bus. The other way round, another process could store what it reads later
// in between, and the log would seem to have lost its end.
func (w *Watch) compare(ctx context.Context) error {
	s, revision, err := w.shared().Get(ctx)
	if err != nil {
		return err
	}
	o, err := w.observe(ctx, &s)
	if err != nil {
		return err
	}
	before := s.clone()
	found := s.observe(o)
	renewed := s.lease().Renew(w.instance, o.at)
	if len(found) > 0 || renewed || s.differs(before) {
		if revision, err = w.shared().Put(ctx, s, revision); err != nil {
			return err
		}
	}
	w.keep(s, revision)
	w.report(found)
	return nil
}

// report logs new losses.
func (w *Watch) report(found []string) {
	slices.Sort(found)
	for _, s := range w.Missed() {
		if !slices.Contains(found, s.Consumer) {
			continue
		}
		args := []any{"listener", s.Consumer, "reason", s.Reason, "events", s.Count(), "since", s.Since}
		if slices.Contains(w.repaired(), s.Consumer) {
			w.log.Error("events left the log before a listener had handled them; what it maintains is repaired",
				args...)
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

// observe reads the log, and then its consumers: what is not pending there was handled if it was in the log long enough
// before (see settle). Which events were removed from between others is read if there are more of them than before.
func (w *Watch) observe(ctx context.Context, before *state) (observation, error) {
	o := observation{consumers: map[string]consumer{}}
	log, err := w.opts.Bus.JetStream().Stream(ctx, bus.StreamEvents)
	if err != nil {
		return o, errs.Wrap(err, errs.Unavailable, "the log can't be read")
	}
	info := log.CachedInfo()
	if !leads(info.Cluster) {
		return o, errs.New(errs.Unavailable,
			"the server that replied for the log does not reach most of the others, so it may lead no more")
	}
	o.at, o.log, o.first, o.last = time.Now().UTC(), info.Created, info.State.FirstSeq, info.State.LastSeq
	if o.first == 0 { // of a log that never had an event
		o.first = 1
	}
	if o.holes = info.State.NumDeleted; o.holes > before.Holes && before.Log.Equal(o.log) {
		whole, err := log.Info(ctx, jetstream.WithDeletedDetails(true))
		if err != nil {
			return o, errs.Wrap(err, errs.Unavailable, "the log can't be read")
		}
		o.removed = whole.State.Deleted
	}
	if err := w.readMarks(ctx, before, &o); err != nil {
		return o, err
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
	for _, name := range w.opts.BuiltIn() {
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

// readMarks reads whether the log has the event that was its last, and which is its last now. A log that was cut back,
// or is an old copy of itself, can have got more events than it has lost. Where the permission to read the log is
// missing, neither is known.
func (w *Watch) readMarks(ctx context.Context, before *state, o *observation) error {
	if w.blind {
		return nil
	}
	limited, done := w.opts.Bus.UntilDenied(ctx, eventlog.DirectGet)
	defer done()
	conn := w.opts.Bus.JetStream().Conn()
	err := func() error {
		if before.Log.Equal(o.log) && before.Last <= o.last {
			has, err := eventlog.Has(limited, conn, before.Last, before.Mark)
			if o.others = !has; err != nil {
				return err
			}
		}
		page, _, err := eventlog.Page(limited, conn, o.last, eventlog.Limit{Events: 1, Bytes: 1})
		if len(page) > 0 && page[0].Sequence == o.last {
			o.mark = page[0].Mark()
		}
		return err
	}()
	if errors.Is(context.Cause(limited), bus.ErrPermissionDenied) || errors.Is(err, errs.Denied) {
		w.blind, o.others, o.mark = true, false, 0
		return nil
	}
	return err
}

// electionMin is the shortest time without word from a leader until the other servers elect one.
const electionMin = 4 * time.Second

// leads reports whether the leader of a log still is the leader: most servers have replied to it within less time than
// they need to elect another one. A leader that was cut off replies for a while with what it had, while the others
// continue: the log would seem to have lost its end.
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

// shared is where the state of a log is stored.
func shared(s *store.Store) store.Shared[state] {
	return store.Shared[state]{Store: s, UUID: bus.StreamEvents, What: "the stored positions of listeners"}
}

func (w *Watch) shared() store.Shared[state] { return shared(w.opts.Store) }

// keep makes an immutable state the current one of this process, unless the process has a later one: a comparison may
// end after a confirmation that it did not see.
func (w *Watch) keep(s state, revision uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if revision >= w.revision {
		w.current, w.revision = s, revision
	}
}

// change changes the stored state. change returns whether it is to be stored.
func (w *Watch) change(ctx context.Context, change func(*state) bool) error {
	s, revision, err := w.shared().Change(ctx, change)
	if err == nil {
		w.keep(s, revision)
	}
	return err
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
	return &c
}

// differs reports whether a state is to be stored: when more than times have changed,
// and now and then.
func (s *state) differs(before *state) bool {
	if !s.Log.Equal(before.Log) || s.Last != before.Last || s.Mark != before.Mark || s.Settled != before.Settled ||
		s.Holes != before.Holes || s.Settling.Last != before.Settling.Last ||
		len(s.Consumers) != len(before.Consumers) ||
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
