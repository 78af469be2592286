package fill

import (
	"context"
	"errors"
	"slices"
)

// fillDue fills the due works, unless another process does.
func (f *Filler) fillDue(ctx context.Context) error {
	if !f.mayFill() {
		return nil
	}
	if !f.leavesIndexes {
		if err := f.reopenIndexes(ctx); err != nil {
			return err
		}
	}
	due := f.due()
	if len(due) == 0 {
		return nil
	}
	if f.opts.Prepare != nil {
		if err := f.opts.Prepare(ctx); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	f.filling.Store(&end)
	defer f.filling.Store(nil)
	if !f.mayFill() { // it has yielded meanwhile
		return nil
	}
	claimed := false
	err := f.change(ctx, func(s *state) bool {
		claimed = s.lease(f.watcher).Claim(f.process, f.opts.Now())
		return claimed
	})
	if err != nil || !claimed {
		return err
	}
	if err := f.settleIndexes(ctx, due); err != nil {
		return err
	}
	waits := false
	for _, name := range due {
		if !f.current.Load().due(name, f.works[name]) {
			continue // indexes that are complete
		}
		may, err := f.mayBegin(ctx, name)
		if err == nil && may {
			err = f.fill(ctx, name)
		}
		if err != nil {
			return err
		}
		waits = waits || !may && f.works[name].readyFrom != nil
	}
	err = f.change(ctx, func(s *state) bool { return s.lease(f.watcher).Release(f.process) })
	if err == nil && waits {
		return errWaits
	}
	return err
}

// errWaits says that a work waits for an index that is being built.
var errWaits = errors.New("fill: an index is being built")

// mayBegin reports whether the works before a work are done.
func (f *Filler) mayBegin(ctx context.Context, name string) (bool, error) {
	w := f.works[name]
	if before := f.works[w.after]; before != nil && !f.current.Load().filled(w.after, before.definition) {
		return false, nil
	}
	if w.readyFrom == nil {
		return true, nil
	}
	return w.readyFrom(ctx)
}

// due returns the names of the works to fill, and logs those that wait for other processes.
func (f *Filler) due() []string {
	s := f.current.Load()
	var due []string
	for name, w := range f.works {
		switch {
		case w.build != nil && f.leavesIndexes:
		case s.due(name, w):
			due = append(due, name)
			delete(f.waits, name)
		case f.disputed(s, name) && !f.waits[name] && s.needed(name, w):
			f.waits[name] = true
			f.log.Warn("a process with another configuration runs: "+w.what+
				" are filled once all processes have the same", w.called, w.shown)
		}
	}
	slices.Sort(due)
	return due
}
