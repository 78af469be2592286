package model

import (
	"fmt"
	"maps"
	"slices"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// state is everything that determines which transitions can follow. A state is
// immutable once it has been reached; states share what they refer to.
type state struct {
	tables    []map[string]*row // of each store
	unacked   []*delivery
	clients   []client
	handlers  []handler
	abandoned []abandoned
	volatile  []*volatileWrite // in the order in which they were made
	waits     []*wait          // in the order in which they began
	clock     uint64
	crashes   int // so far, where they are limited
	histories Histories
	snapshots []map[string]map[string]*row // with lagging indexes: the stores before each write
}

// delivery is an event that a consumer has not acknowledged.
type delivery struct {
	consumer int
	name     string // the consumer's
	event    *event.Envelope
	wait     string // the subject of the request that waits for it; "" for none
	hash     uint64
}

func (d *delivery) String() string {
	e := d.event
	return fmt.Sprintf("%s of %s %s/%s@%d", d.name, e.Event, e.Store, e.UUID, e.Revision-min(e.Revision, Epoch))
}

func newDelivery(consumer int, name string, e *event.Envelope) delivery {
	same := *e
	same.ID, same.Time = "", "" // handlers do not read them
	return delivery{consumer, name, e, e.Ctx.Wait, mixText(uint64(consumer), string(same.Append(nil)))}
}

// process is an operation of a client, or the handling of an event, between two
// of its steps. All it knows is the answers to its driver calls.
type process struct {
	log  []*answer
	hash uint64 // of log
	next call   // the driver call that it makes next

	waits uint64 // the volatile write whose answer it waits for; 0 for none
}

type client struct {
	at    int // index of its operation
	begun bool
	since uint64 // the clock when its operation began
	process
}

type handler struct {
	delivery *delivery
	caused   []uint64 // hashes of the deliveries of its writes that a request waits for
	asked    []*round // in other processes
	process
}

// History is what clients did to an object, in times of the clock.
type History struct {
	Live        bool
	Created     uint64 // when the object was last created
	CreateBegan uint64 // when that operation began
	Written     uint64 // when a client last wrote it
	WriteBegan  uint64 // when that operation began
	WrittenAt   uint64 // the revision of that write
	Deleted     uint64 // when it was last deleted; 0 for never
	DeletedAt   uint64 // the revision of that deletion
	Linked      uint64 // since when its keys have their values
	keys        string
	hash        uint64
}

// Histories are those of all objects, by store/uuid.
type Histories map[string]History

// record adds a write to the histories. began is when the client's operation
// began.
func (s *state) record(mappings []store.Mapping, e *event.Envelope, began uint64) {
	key := e.Store + "/" + e.UUID
	h := s.histories[key]
	switch {
	case e.Event == event.StoreDeleted:
		h.Live, h.Deleted, h.DeletedAt = false, s.clock, e.Revision
	case e.Origin != event.OriginGo:
		return
	case e.Event == event.StoreSaved:
		h.Live, h.Created, h.CreateBegan = true, s.clock, began
		fallthrough
	default:
		h.WriteBegan, h.Written, h.WrittenAt = began, s.clock, e.Revision
		if keys := keysOf(mappings, e); e.Event == event.StoreSaved || keys != h.keys {
			h.Linked, h.keys = s.clock, keys
		}
	}
	h.hash = h.sum(key)
	s.histories = maps.Clone(s.histories)
	s.histories[key] = h
}

func (h *History) sum(key string) uint64 {
	sum := mixText(mixText(0, key), h.keys)
	if h.Live {
		sum++
	}
	for _, v := range []uint64{h.Created, h.CreateBegan, h.Written, h.WriteBegan, h.WrittenAt, h.Deleted, h.DeletedAt,
		h.Linked} {
		sum = mix(sum, v)
	}
	return sum
}

func keysOf(mappings []store.Mapping, e *event.Envelope) string {
	var keys []byte
	for i := range mappings {
		if m := &mappings[i]; m.Source == e.Store {
			keys = append(append(keys, object.Field(e.Object, m.Key)...), ';')
		}
	}
	return string(keys)
}

// fingerprint identifies a state: the same transitions can follow from states of
// equal fingerprints. The order of deliveries and of handlers does not matter.
func (s *state) fingerprint(clock bool) uint64 {
	var sum uint64
	for i, table := range s.tables {
		for _, r := range table {
			sum += mix(r.hash, uint64(i))
		}
	}
	for _, d := range s.unacked {
		sum += mix(d.hash, 3+s.holders(d))
	}
	sum += mix(uint64(s.crashes), 5) //nolint:gosec // a count
	for _, w := range s.waits {
		sum += w.hash()
	}
	for place, w := range s.volatile {
		sum += mix(mix(w.hash, uint64(place)), uint64(w.table)+7)
	}
	for i := range s.clients {
		w := &s.clients[i]
		h := mix(mix(uint64(i), uint64(w.at)), w.hash)
		if w.waits > 0 {
			h = mix(h, s.place(w.waits))
		}
		if clock {
			h = mix(h, w.since)
		}
		sum += h
	}
	for i := range s.handlers {
		h := &s.handlers[i]
		unacked := uint64(0)
		if slices.Contains(s.unacked, h.delivery) {
			unacked = 1
		}
		hash := h.hash
		if h.waits > 0 {
			hash = mix(hash, s.place(h.waits))
		}
		for _, r := range h.asked {
			hash = mix(hash, r.sum())
		}
		sum += mix(mix(mix(h.delivery.hash, s.holders(h.delivery)), unacked), hash)
	}
	for _, a := range s.abandoned {
		sum += mix(mix(a.hash, a.sum()), 11)
	}
	if !clock {
		return mix(sum, 0)
	}
	for _, h := range s.histories {
		sum += h.hash
	}
	return mix(sum, s.clock)
}

// place is the place of a volatile write, counted from 1.
func (s *state) place(id uint64) uint64 {
	return 1 + uint64(slices.IndexFunc(s.volatile, func(w *volatileWrite) bool { return w.id == id }))
}

// redeliver makes an event available again after its handler crashed. A handler
// that holds another delivery of it may be past the step that would have read
// what the crashed one wrote: its acknowledgement is not for this delivery.
func (s *state) redeliver(d *delivery) {
	available := slices.ContainsFunc(s.unacked, func(o *delivery) bool { return o.hash == d.hash && s.holders(o) == 0 })
	if !available {
		again := *d
		s.unacked = append(slices.Clone(s.unacked), &again)
	}
}

// holders is how many handlers hold a delivery.
func (s *state) holders(d *delivery) (n uint64) {
	for i := range s.handlers {
		if s.handlers[i].delivery == d {
			n++
		}
	}
	return n
}

// quiescent reports whether workers have nothing to do.
func (s *state) quiescent() bool {
	return len(s.unacked) == 0 && len(s.handlers) == 0 && len(s.volatile) == 0 && len(s.abandoned) == 0
}
