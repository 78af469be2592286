package model

import (
	"context"
	"slices"

	"belfry/pkg/event"
	"belfry/pkg/store/driver"
)

// A client's operation may wait for the work that it causes (see Await). Workers report each event of
// it that they have handled, with the events of the writes that they made for it, and the wait ends
// when each of these is reported: as package applied has it. The report is sent after the handler's
// last step and before the acknowledgement; a handler that crashes reports nothing. From the end of
// the wait on, Checker.OnApplied checks each state that a write leads to.

// Applied is a write whose wait has ended.
type Applied struct {
	Store, UUID string // what was written
	Created     bool   // it was a creation
	Deleted     bool   // it was a deletion

	wait   *wait
	stores []*memoryTable
}

// Since returns an object as it was at the write and as it has been since, deletions included. For an
// object that was itself written for the request, a cascade for example, it begins with that write.
func (a *Applied) Since(store, uuid string) []driver.Record {
	var all []driver.Record
	table := a.table(store)
	if r := a.wait.before[table][uuid]; r != nil {
		all = append(all, r.Record)
	}
	for i := range a.wait.since {
		v := &a.wait.since[i]
		if v.table != table || v.row.UUID != uuid {
			continue
		}
		if v.caused {
			all = all[:0]
		}
		all = append(all, v.row.Record)
	}
	return all
}

// Caused returns the objects of a store that were written for the request.
func (a *Applied) Caused(store string) []string {
	var all []string
	for i := range a.wait.since {
		if v := &a.wait.since[i]; v.caused && v.table == a.table(store) {
			all = append(all, v.row.UUID)
		}
	}
	return all
}

// Lasting reports whether an object has existed since the write, or was created by it, and was not
// deleted since.
func (a *Applied) Lasting(store, uuid string) bool {
	table := a.table(store)
	deleted := slices.ContainsFunc(a.wait.since,
		func(v version) bool { return v.table == table && v.row.UUID == uuid && v.row.Deleted })
	r := a.wait.before[table][uuid]
	return !deleted && (r != nil && !r.Deleted || a.Store == store && a.UUID == uuid)
}

func (a *Applied) table(store string) int {
	return slices.IndexFunc(a.stores, func(s *memoryTable) bool { return s.name == store })
}

// wait is the wait of one request. It is immutable: states share it.
type wait struct {
	subject  string
	before   []map[string]*row // the stores before the write
	began    uint64            // hash of before
	since    []version         // of sources, and of deleted objects; that of the request first
	expected []uint64          // hashes of the deliveries that it waits for
	reported []uint64
	lost     bool // a handler that may have made writes crashed and could not report them: it never ends
}

// version is an object after a write.
type version struct {
	table  int
	row    *row
	caused bool // the write was made by the request or for it
}

func (w *wait) done() bool {
	return !w.lost && !slices.ContainsFunc(w.expected, func(h uint64) bool { return !slices.Contains(w.reported, h) })
}

func (w *wait) hash() uint64 {
	h := mixText(w.began, w.subject)
	for _, v := range w.since {
		h = mix(h, mix(v.row.hash, uint64(v.table)))
	}
	sum := uint64(0)
	for _, e := range w.expected {
		sum += mix(e, 1)
	}
	for _, e := range w.reported {
		sum += mix(e, 2)
	}
	if w.lost {
		sum++
	}
	return mix(h, sum)
}

// noteWrite adds a write to the waits that it concerns. before are the stores before it.
func (c *Checker) noteWrite(table int, w *write, before []map[string]*row) {
	if c.run == nil && c.handler == nil {
		return // the setup
	}
	c.wroteNow = true
	subject := w.event.Ctx.Wait
	begins := subject != "" && c.handler == nil
	if !begins && len(c.state.waits) == 0 {
		return
	}
	waits := make([]*wait, 0, len(c.state.waits)+1)
	for _, old := range c.state.waits {
		caused := subject == old.subject
		if caused || w.row.Deleted || c.isSource(w.event.Store) {
			next := *old
			next.since = append(next.since[:len(next.since):len(next.since)], version{table, w.row, caused})
			old = &next
		}
		waits = append(waits, old)
	}
	hashes := make([]uint64, 0, len(w.deliveries))
	for _, d := range w.deliveries {
		hashes = append(hashes, d.hash)
	}
	switch {
	case begins:
		waits = append(waits, &wait{
			subject: subject, before: before, began: hashTables(before), since: []version{{table, w.row, true}},
			expected: hashes,
		})
	case subject != "":
		c.handler.caused = append(c.handler.caused[:len(c.handler.caused):len(c.handler.caused)], hashes...)
	}
	c.state.waits = waits
}

func (c *Checker) isSource(store string) bool {
	for i := range c.scenario.Mappings {
		if c.scenario.Mappings[i].Source == store {
			return true
		}
	}
	return false
}

func hashTables(tables []map[string]*row) (sum uint64) {
	for i, t := range tables {
		for _, r := range t {
			sum += mix(r.hash, uint64(i))
		}
	}
	return sum
}

// report is what a worker does when it has handled an event that a request waits for.
func (s *state) report(h *handler) {
	s.changeWait(h.delivery, func(w *wait) {
		w.expected = append(w.expected[:len(w.expected):len(w.expected)], h.caused...)
		if !slices.Contains(w.reported, h.delivery.hash) {
			w.reported = append(w.reported[:len(w.reported):len(w.reported)], h.delivery.hash)
		}
	})
}

// loseReport is what the crash of a handler does to a wait: the waiter notices that an attempt is
// missing whose writes it does not know. Reports of workers that derive properties name no writes.
func (s *state) loseReport(h *handler, ignored bool) {
	if ignored || event.ByWorker(h.delivery.name) {
		return
	}
	s.changeWait(h.delivery, func(w *wait) { w.lost = true })
}

func (s *state) changeWait(d *delivery, change func(*wait)) {
	i := slices.IndexFunc(s.waits, func(w *wait) bool { return w.subject == d.wait })
	if i < 0 {
		return
	}
	next := *s.waits[i]
	change(&next)
	s.waits = slices.Clone(s.waits)
	s.waits[i] = &next
}

// checkApplied calls OnApplied for each wait that has ended, if the last step was a write or a report.
func (c *Checker) checkApplied(ctx context.Context) error {
	if c.OnApplied == nil || !c.wroteNow {
		return nil
	}
	c.wroteNow = false
	for _, w := range c.state.waits {
		if !w.done() {
			continue
		}
		first := w.since[0]
		old := w.before[first.table][first.row.UUID]
		a := &Applied{
			Store: c.stores[first.table].name, UUID: first.row.UUID,
			Created: old == nil || old.Deleted, Deleted: first.row.Deleted, wait: w, stores: c.stores,
		}
		if err := c.OnApplied(ctx, c.set, a); err != nil {
			return err
		}
	}
	return nil
}
