package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
)

// Processes is how many processes of belfry there are.
func (w *World) Processes() int { return len(w.belfries()) }

// Serving is the program of the process that commands ask, since it holds the data folder of their configuration; "" if
// none does. Commands of one version do not understand a process of another.
func (w *World) Serving() string {
	if w.kind != Files && w.kind != FilesAndBus {
		return ""
	}
	u := w.fronts[0]
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.wanted {
		return ""
	}
	return u.program
}

// Replace returns a fault that replaces the program of one process of belfry after the other, in a random order, by the
// next of some programs, and then by the one after it, and so on in a circle. A process is stopped or killed before.
// Half of the time another fault is there meanwhile: a process or a server is killed, or paused.
func (w *World) Replace(programs ...string) Nemesis {
	var left []*unit // to be replaced by programs[0]
	return Nemesis{Name: "replace a program", Inject: func(ctx context.Context, r *rand.Rand) (heal, error) {
		if len(left) == 0 {
			left = some(r, len(w.belfries()), w.belfries())
			programs = append(slices.Clone(programs[1:]), programs[0])
		}
		u := left[0]
		left = left[1:]
		var err error
		how := "stopped"
		if r.IntN(2) == 0 {
			how = "killed"
			u.kill()
		} else {
			err = u.stop()
		}
		w.t.Logf("%s is %s and replaced by %s", u.name, how, programs[0])
		u.program = programs[0]
		others := func(context.Context) error { return nil }
		if all := w.processNemeses(); err == nil && r.IntN(2) == 0 {
			others, err = all[r.IntN(len(all))].Inject(ctx, r)
		}
		return func(ctx context.Context) error { return errors.Join(others(ctx), u.start()) }, err
	}}
}
