package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"belfry/test/backing"
)

// heal ends a fault.
type heal = func(ctx context.Context) error

// lease is longer than a worker may be silent before its events are redelivered to another one.
const lease = 12 * time.Second

// Nemeses returns the faults that can be injected into the world: one at a time. Missing says which can't
// be injected on this machine.
func (w *World) Nemeses() []Nemesis {
	all := w.processNemeses()
	all = append(all, w.networkNemeses()...)
	all = append(all, w.diskNemeses()...)
	all = append(all, w.clusterNemeses()...)
	all = append(all, w.reload())
	if w.clock != nil {
		all = append(all, w.stepClock())
	}
	return all
}

// processNemeses kill and stop processes.
func (w *World) processNemeses() []Nemesis {
	var all []Nemesis
	add := func(name string, units []*unit) {
		if len(units) > 0 {
			all = append(all, w.kill("kill "+name, 1, units), w.pause("pause "+name, units))
		}
	}
	add("front", w.fronts)
	add("worker", w.workers)
	var buses []*unit
	for _, b := range w.buses {
		buses = append(buses, b.unit)
	}
	add("bus", buses)
	if n := len(w.belfries()); n > 1 {
		all = append(all, w.kill("kill half of belfry", n/2, w.belfries()))
	}
	if n := len(w.units()); n > 1 {
		all = append(all, w.kill("kill everything", n, w.units()))
	}
	if w.backend != nil {
		all = append(all,
			Nemesis{Name: "kill backend", Kills: 1, Inject: func(context.Context, *rand.Rand) (heal, error) {
				w.backend.Kill()
				return func(context.Context) error { w.backend.Restart(); return nil }, nil
			}})
	}
	return all
}

// some returns so many of a list, at random.
func some[T any](r *rand.Rand, n int, all []T) []T {
	var chosen []T
	for _, i := range r.Perm(len(all))[:n] {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// kill kills some processes and starts them again.
func (w *World) kill(name string, count int, of []*unit) Nemesis {
	return Nemesis{Name: name, Kills: count, Inject: func(_ context.Context, r *rand.Rand) (heal, error) {
		killed := some(r, count, of)
		for _, u := range killed {
			u.kill()
		}
		return func(context.Context) error { return startAll(killed) }, nil
	}}
}

func startAll(units []*unit) error {
	var all []error
	for _, u := range units {
		all = append(all, u.start())
	}
	return errors.Join(all...)
}

// pause stops a process, which then continues with what it had in mind.
func (w *World) pause(name string, of []*unit) Nemesis {
	return Nemesis{Name: name, Full: lease, Inject: func(_ context.Context, r *rand.Rand) (heal, error) {
		u := some(r, 1, of)[0]
		return func(context.Context) error { return u.signal(syscall.SIGCONT) }, u.signal(syscall.SIGSTOP)
	}}
}

// networkNemeses cut and slow the connections of belfry's processes.
func (w *World) networkNemeses() []Nemesis {
	var all []Nemesis
	for _, to := range []struct {
		name  string
		links map[*unit][]*backing.Proxy
	}{{"bus", w.toBus}, {"stores", w.toStores}} {
		if len(to.links) == 0 {
			continue
		}
		add := func(name string, inject func(context.Context, *backing.Proxy) error) {
			all = append(all,
				Nemesis{Name: name + " " + to.name, Inject: func(ctx context.Context, r *rand.Rand) (heal, error) {
					affected := some(r, 1+r.IntN(len(w.belfries())), w.belfries())
					var proxies []*backing.Proxy
					for _, u := range affected {
						proxies = append(proxies, to.links[u]...)
					}
					return breakAll(ctx, proxies, inject)
				}})
		}
		add("cut connections to", func(ctx context.Context, p *backing.Proxy) error { return p.Disable(ctx) })
		add("lose what is sent to", func(ctx context.Context, p *backing.Proxy) error { return p.Drop(ctx) })
		add("reset connections at a reply of",
			func(ctx context.Context, p *backing.Proxy) error { return p.ResetAtReply(ctx, 0) })
		add("end replies midway of",
			func(ctx context.Context, p *backing.Proxy) error { return p.Truncate(ctx, replySize) })
		add("delay replies of", func(ctx context.Context, p *backing.Proxy) error { return p.Delay(ctx, slowReply) })
	}
	return all
}

// replySize is how many bytes a connection that ends midway delivers: some replies, and a part of one.
const replySize = 900

// slowReply is how long the reply of a slow server takes, in milliseconds.
const slowReply = 300

// breakAll injects a fault into connections.
func breakAll(ctx context.Context, proxies []*backing.Proxy,
	inject func(context.Context, *backing.Proxy) error) (heal, error) {
	clearAll := func(ctx context.Context) error {
		var all []error
		for _, p := range proxies {
			all = append(all, p.Clear(ctx))
		}
		return errors.Join(all...)
	}
	for _, p := range proxies {
		if err := inject(ctx, p); err != nil {
			return nil, errors.Join(err, clearAll(ctx))
		}
	}
	return clearAll, nil
}

// maxStep is by how much a stepped clock differs from the system's.
const maxStep = time.Hour

// stepClock sets the wall clock of all processes forward or back, and then to the system's time again.
func (w *World) stepClock() Nemesis {
	return Nemesis{Name: "step of the clock", Full: lease, Inject: func(_ context.Context, r *rand.Rand) (heal, error) {
		w.clock.Set(time.Duration(r.Int64N(int64(2*maxStep))) - maxStep)
		return func(context.Context) error { w.clock.Set(0); return nil }, nil
	}}
}
