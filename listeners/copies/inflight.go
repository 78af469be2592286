package copies

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Of identifies the copies that a store's objects have of those that one reference names.
type Of struct{ Store, Reference string }

// String is "Recipes.author".
func (o Of) String() string { return o.Store + "." + o.Reference }

// InFlight has the events that a process handles, or that wait for another attempt or part of their work. So it knows
// how far each of the copies is behind.
type InFlight struct {
	mu    sync.Mutex
	works map[workID]*work
}

type workID struct {
	of    Of
	event string
}

type state int

const (
	running state = iota
	failed        // it is redelivered, here or to another process
	handed        // what is left is in the stream of retries, for this process or another
)

// work is what an event makes of some copies.
type work struct {
	since    time.Time // of the event
	state    state
	sequence uint64 // of the event in the log, if it has failed; of the last one in the stream of retries, if known
}

// Begin adds the work on an event, for the copies that it concerns. The caller calls end with the result.
func (h *InFlight) Begin(w *Worker, e *event.Envelope, sequence uint64) (end func(error)) {
	concerned := w.concerned(e)
	if len(concerned) == 0 {
		return func(error) {}
	}
	since, err := time.Parse(time.RFC3339Nano, e.Time)
	if err != nil {
		since = time.Now()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.works == nil {
		h.works = map[workID]*work{}
	}
	for _, of := range concerned {
		h.works[workID{of, e.ID}] = &work{since: since, sequence: sequence}
	}
	return func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, of := range concerned {
			id := workID{of, e.ID}
			switch one := h.works[id]; {
			case one == nil || one.state != running:
			case err != nil:
				one.state = failed
			default:
				delete(h.works, id)
			}
		}
	}
}

// HandedOver says that an event with what is left of its work was handed over.
func (h *InFlight) HandedOver(e *event.Envelope) {
	of, ok := restOf(e)
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.works[workID{of, e.ID}]; ok && one != nil {
		one.state, one.sequence = handed, 0
	}
}

// Position is how far the listener is in a stream.
type Position struct {
	Delivered, Acknowledged uint64 // the sequence up to which all are
	Pending                 bool   // there are more
	Left                    bool   // some are not acknowledged
}

// Waiting reports whether there is work that waits for another attempt, or for its next part.
func (h *InFlight) Waiting() (attempts, parts bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.works {
		attempts, parts = attempts || one.state == failed, parts || one.state == handed
	}
	return attempts, parts
}

// Settle removes work that waited and that other processes have done, by the positions of the listener in the log and
// in the stream of retries; nil: not known.
func (h *InFlight) Settle(log, retries *Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, one := range h.works {
		done := false
		switch {
		case one.state == failed && log != nil:
			done = !log.Left && !log.Pending || one.sequence <= log.Acknowledged
		case one.state == handed && retries != nil:
			if one.sequence == 0 && !retries.Pending {
				one.sequence = retries.Delivered // or before it
			}
			done = !retries.Left && !retries.Pending ||
				one.sequence != 0 && one.sequence <= retries.Acknowledged
		}
		if done {
			delete(h.works, id)
		}
	}
}

// Since returns the times of the oldest events whose work is not done, by the copies.
func (h *InFlight) Since() map[Of]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[Of]time.Time{}
	for id, one := range h.works {
		if oldest, has := all[id.of]; !has || one.since.Before(oldest) {
			all[id.of] = one.since
		}
	}
	return all
}

// concerned returns the copies that the work on an event may change in other objects.
func (w *Worker) concerned(e *event.Envelope) (all []Of) {
	if e.Ctx.Rest != "" {
		if of, ok := restOf(e); ok {
			all = append(all, of)
		}
		return all
	}
	for _, k := range w.following(e) {
		all = append(all, Of{k.Store, k.Reference})
	}
	return all
}

// restOf returns the copies that the rest of the work on an event is about.
func restOf(e *event.Envelope) (Of, bool) {
	var from rest
	err := json.Unmarshal([]byte(e.Ctx.Rest), &from)
	return Of{from.Store, from.Reference}, err == nil
}

// SourcesOf returns the stores that copies have their values from, each once.
func SourcesOf(all []*store.Copies) (names []string) {
	for _, k := range all {
		if !slices.Contains(names, k.Source) {
			names = append(names, k.Source)
		}
	}
	return names
}
