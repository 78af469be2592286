package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// slowSync is how long a sync of a slow disk takes.
const slowSync = 200 * time.Millisecond

// diskNemeses let disks fail, of one machine or of several at once.
func (w *World) diskNemeses() []Nemesis {
	var disks []*machine
	for _, m := range w.machines {
		if m.disk != nil {
			disks = append(disks, m)
		}
	}
	if len(disks) == 0 {
		return nil
	}
	// The servers of a cluster survive the loss of one.
	one := func(r *rand.Rand) []*machine { return some(r, 1, disks) }
	atRandom := one
	if w.kind != Cluster {
		atRandom = func(r *rand.Rand) []*machine { return some(r, 1+r.IntN(len(disks)), disks) }
	}
	all := []Nemesis{
		w.fault("slow syncs", atRandom, func(m *machine, _ *rand.Rand) { m.disk.DelaySyncs(slowSync) },
			(*machine).repair),
		w.fault("full disk", atRandom, func(m *machine, r *rand.Rand) { m.disk.Fill(r.Int64N(64 << 10)) }, w.makeRoom),
		w.fault("read-only disk", atRandom, func(m *machine, _ *rand.Rand) { m.disk.ReadOnly() }, (*machine).replug),
		w.fault("failing syncs", atRandom, func(m *machine, _ *rand.Rand) { m.disk.FailSyncs() }, (*machine).replug),
		w.fault("failing writes", atRandom, func(m *machine, _ *rand.Rand) { m.disk.FailWrites() }, (*machine).replug),
		w.powerCut("power cut", 1, one),
	}
	if len(disks) > 1 {
		all = append(all,
			w.powerCut("power cut of all machines", len(disks), func(*rand.Rand) []*machine { return disks }))
	}
	return all
}

// fault lets the disks of machines fail.
func (w *World) fault(name string, which func(*rand.Rand) []*machine, inject func(*machine, *rand.Rand),
	end func(*machine) error) Nemesis {
	return Nemesis{Name: name, Inject: func(_ context.Context, r *rand.Rand) (heal, error) {
		machines := which(r)
		for _, m := range machines {
			inject(m, r)
		}
		return func(context.Context) error {
			var all []error
			for _, m := range machines {
				all = append(all, end(m))
			}
			return errors.Join(all...)
		}, nil
	}}
}

// powerCut ends the processes of machines and takes back what is not synced: everything, or what the disk
// had not written by itself.
func (w *World) powerCut(name string, count int, which func(*rand.Rand) []*machine) Nemesis {
	return Nemesis{Name: name, PowerCuts: count, Kills: count,
		Inject: func(ctx context.Context, r *rand.Rand) (heal, error) {
			machines := which(r)
			// Half of the cuts come while syncs are slow: then much is written and not synced.
			if r.IntN(2) == 0 {
				for _, m := range machines {
					m.disk.DelaySyncs(slowSync)
				}
				select {
				case <-ctx.Done():
				case <-time.After(slowSync + time.Duration(r.Int64N(int64(2*slowSync)))):
				}
			}
			for _, m := range machines {
				m.disk.Fail() // from here on nothing is written
			}
			for _, m := range machines {
				m.cut(r)
			}
			return func(context.Context) error {
				var all []error
				for _, m := range machines {
					m.disk.Heal()
					all = append(all, m.start())
				}
				return errors.Join(all...)
			}, nil
		}}
}

// cut ends the processes of a machine and takes back what is not synced.
func (m *machine) cut(r *rand.Rand) {
	m.kill()
	if r != nil && r.IntN(2) == 0 {
		r = nil
	}
	m.disk.Cut(r)
}

// repair ends the faults of a disk; the processes continue.
func (m *machine) repair() error {
	m.disk.Heal()
	return nil
}

// replug ends the faults of a disk that could not be written, and restarts the machine: what was not
// synced is gone, as it may be after such a fault.
func (m *machine) replug() error {
	m.disk.Fail()
	m.cut(nil)
	m.disk.Heal()
	return m.start()
}

// makeRoom ends the fault of a full disk. A NATS server without belfry disables JetStream when it can't
// write, and needs a restart; belfry continues by itself.
func (w *World) makeRoom(m *machine) error {
	m.disk.Heal()
	for _, b := range w.buses {
		if b.machine == m {
			m.kill()
			return m.start()
		}
	}
	return nil
}
