package fill

import (
	"maps"
	"strings"
	"time"

	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/walk"
)

// state is the state of works that the processes of an installation share. Processes of the release before computed
// fields share it too: they know works as mappings, and any that they don't know as removed, so that it is due again
// after them.
type state struct {
	Works map[string]*record `json:"mappings"` // by name
	Lease lease              `json:"lease,omitzero"`
	// identifies the last loss of events for which works are done again
	Again string `json:"again,omitempty"`

	// Removed has the arrays of mappings that no process has any longer, and since when: objects keep their copies.
	Removed map[string]time.Time `json:"removed,omitempty"`
}

// record is a work, and how far it is done.
type record struct {
	// Seen has a number for each definition of the work in the configurations of processes that run. As long as
	// there is more than one, processes count theirs up, by which others see that they run.
	Seen map[string]uint64 `json:"seen"`

	Filled string    `json:"filled,omitempty"` // the definition by which all objects have been filled
	At     time.Time `json:"at,omitzero"`      // when

	// Since has, for each definition of a cascade that has differed between processes, when a process had it first. The
	// events of later deletions may have gone to a process with another one, whose workers delete nothing.
	Since map[string]time.Time `json:"since,omitempty"`

	// Again is the loss of events after which the work must be repeated; "": no loss. The work stays filled meanwhile.
	Again string `json:"again,omitempty"`

	Fill *progress `json:"fill,omitempty"` // in progress, or interrupted
	Last *progress `json:"last,omitempty"` // the last one that was complete
}

// progress is how far a fill is.
type progress struct {
	Definition string         `json:"definition"`
	Builds     []driver.Build `json:"builds,omitempty"` // of indexes, that are complete with the fill
	walk.Progress
}

// lease is held by the process that fills.
type lease struct {
	Process string `json:"process"`
	Beat    uint64 `json:"beat"` // counts up while it runs
}

// removed is the definition of a work in a configuration that does not have it.
const removed = "-"

// watcher notices which processes run: those whose numbers change. It compares by the clock of this process alone.
type watcher struct {
	alone bool
	gone  time.Duration // without a change
	now   func() time.Time
	seen  map[string]beat
}

type beat struct {
	number  uint64
	at      time.Time
	counted bool // up while this process watched: its process runs
}

// runs reports whether the process that increments a number may still run.
func (w *watcher) runs(who string, number uint64) bool {
	if w.alone {
		return false
	}
	last, known := w.seen[who]
	if !known || last.number != number {
		w.seen[who] = beat{number, w.now(), known}
		return true
	}
	return w.now().Sub(last.at) < w.gone
}

// others returns the works of which a process with another definition is known to run. One that was only assumed, or
// has registered before this process began, may have ended.
func (w *watcher) others() map[string]bool {
	all := map[string]bool{}
	for who, last := range w.seen {
		if at := strings.LastIndexByte(who, ' '); last.counted && at > 0 {
			all[who[:at]] = true
		}
	}
	return all
}

// forget drops the beats that a state no longer has: one that returns counts from the beginning.
func (w *watcher) forget(s *state) {
	maps.DeleteFunc(w.seen, func(who string, _ beat) bool {
		if who == leaseOf(s.Lease.Process) {
			return false
		}
		for name, r := range s.Works {
			if definition, ok := strings.CutPrefix(who, name+" "); ok {
				_, known := r.Seen[definition]
				return !known
			}
		}
		return true
	})
}

func leaseOf(process string) string { return "lease " + process }

// observe brings a state up to date with the definitions of this process, and reports whether it has changed. A work
// counts as filled only by a definition that all processes have had from the beginning of the fill to its end, because
// processes write by their own.
func (s *state) observe(own map[string]string, w *watcher) (changed bool) {
	if s.Works == nil {
		s.Works = map[string]*record{}
	}
	for name := range own {
		if s.Works[name] == nil {
			// Processes without it, which know of it from now on, have yet to say that they run.
			s.Works[name] = &record{Seen: map[string]uint64{removed: 0}}
			changed = true
		}
		changed = s.restored(name) || changed
	}
	for name, r := range s.Works {
		mine := own[name]
		if mine == "" {
			mine = removed
		}
		for other, number := range r.Seen {
			if other != mine && !w.runs(name+" "+other, number) {
				delete(r.Seen, other)
				changed = true
			}
		}
		if _, known := r.Seen[mine]; !known || len(r.Seen) > 1 {
			r.Seen[mine]++
			changed = true
		}
		if (len(r.Seen) > 1 || r.Filled != mine) && r.Filled != "" {
			r.Filled, r.Fill = "", nil
			changed = true
		}
		if r.Fill != nil && (len(r.Seen) > 1 || r.Fill.Definition != mine) {
			r.Fill, changed = nil, true
		}
		if strings.HasPrefix(name, orphansOf) {
			changed = r.noteSince(w.now()) || changed
		}
		if mine == removed && len(r.Seen) == 1 {
			delete(s.Works, name)
			s.remove(name, w.now())
			changed = true
		}
	}
	w.forget(s)
	return changed
}

// noteSince keeps since when processes have each definition, where they differ.
func (r *record) noteSince(now time.Time) (changed bool) {
	for definition := range r.Since {
		if _, seen := r.Seen[definition]; !seen {
			delete(r.Since, definition)
			changed = true
		}
	}
	for definition := range r.Seen {
		if _, noted := r.Since[definition]; noted || len(r.Seen) == 1 || definition == removed {
			continue
		}
		if r.Since == nil {
			r.Since = map[string]time.Time{}
		}
		r.Since[definition], changed = now.UTC(), true
	}
	return changed
}

// remove notes that no process has a mapping any longer. Works of other kinds leave nothing to note.
func (s *state) remove(name string, now time.Time) {
	if array := arrayOf(name); array != "" {
		if s.Removed == nil {
			s.Removed = map[string]time.Time{}
		}
		s.Removed[name] = now
	}
}

// restored forgets removed mappings whose array a mapping has again, and reports whether there was one.
func (s *state) restored(name string) bool {
	array, before := arrayOf(name), len(s.Removed)
	maps.DeleteFunc(s.Removed, func(name string, _ time.Time) bool { return arrayOf(name) == array })
	return len(s.Removed) < before
}

// arrayOf returns the array that a work fills from objects of a store, such as Authors.books of "Books in
// Authors.books"; "" for other works. No name of a store has a space.
func arrayOf(work string) string {
	if words := strings.Split(work, " "); len(words) == 3 && words[1] == "in" {
		return words[2]
	}
	return ""
}

// filled reports whether a work is done, and no process has another definition of it.
func (s *state) filled(name, definition string) bool {
	r := s.Works[name]
	return r != nil && r.Filled == definition && len(r.Seen) == 1
}

// due reports whether a work is to be done, and no process has another definition of it.
func (s *state) due(name string, w *work) bool {
	return s.needed(name, w) && len(s.Works[name].Seen) == 1
}

// needed reports whether a work is to be done, perhaps once no process has another definition of it.
func (s *state) needed(name string, w *work) bool {
	r := s.Works[name]
	if r == nil || r.Again != "" || r.Filled == w.definition {
		return r != nil && r.Again != ""
	}
	return !w.onlyAgain || !r.Since[w.definition].IsZero()
}

// again has works done once more from their beginning, unless that was requested before by the same id.
func (s *state) again(id string, names []string) bool {
	if s.Again == id {
		return false
	}
	s.Again = id
	for _, name := range names {
		if r := s.Works[name]; r != nil {
			r.Again, r.Fill = id, nil
		}
	}
	return true
}

// disputed reports whether processes have different definitions of a work, or may have.
func (s *state) disputed(name string) bool {
	r := s.Works[name]
	return r != nil && len(r.Seen) > 1
}

// skip counts a work as done if no process is known to have another definition. One that was only assumed says so at
// its next poll, and the work is due again.
func (s *state) skip(name, definition string, now time.Time) bool {
	r := s.Works[name]
	// Of reloads in quick succession, a later one may have removed the work before this Filler noticed that it yields.
	if r == nil || r.Filled == definition {
		return false
	}
	for other, number := range r.Seen {
		if other != definition && (other != removed || number > 0) {
			return false
		}
	}
	r.Seen = map[string]uint64{definition: r.Seen[definition]}
	r.Filled, r.At, r.Fill = definition, now, nil
	return true
}

// settle counts a work as done for which nothing was to be done.
func (s *state) settle(name string, w *work, now time.Time) bool {
	if !s.due(name, w) {
		return false
	}
	r := s.Works[name]
	r.Filled, r.At, r.Fill, r.Last = w.definition, now, nil, nil
	return true
}

// reopen has a work done again.
func (s *state) reopen(name, definition string) bool {
	if !s.filled(name, definition) {
		return false
	}
	s.Works[name].Filled = ""
	return true
}

// lease is the lease of the process that fills. Its beats show that it runs: no clocks are compared.
func (s *state) lease(w *watcher) store.Lease {
	return store.Lease{Holder: &s.Lease.Process, Beat: &s.Lease.Beat, Lasts: w.gone, Ended: func() bool {
		return !w.runs(leaseOf(s.Lease.Process), s.Lease.Beat)
	}}
}
