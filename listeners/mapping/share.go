package mapping

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"belfry/listeners/mapping/route"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
)

// Definition identifies the mappings of a set: workers whose definitions are equal compute equal entries from equal
// objects, and may run each other's rounds.
func Definition(set *store.Set) string {
	type definition struct {
		store.Mapping
		When string // instead of the compiled condition
	}
	var all []definition
	for _, m := range set.Mappings() {
		d := definition{Mapping: m}
		if m.When != nil {
			d.When = fmt.Sprint(m.When)
		}
		all = append(all, d)
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic("mapping: " + err.Error()) // texts and numbers can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// waiter is a round that another process was asked for. Wait returns nil once that has succeeded.
type waiter interface {
	Wait(ctx context.Context) error
}

// begin begins the round of an event for a group: another process's, if the target is contended and another's, or one
// of this process. The returned function waits for it.
func (w *Worker) begin(g group, e *event.Envelope) func(ctx context.Context) error {
	r := request{source: e.UUID, fence: awaited(e), trace: e.Ctx.Trace}
	if w.sharing == nil || !w.contended.has(g) {
		return w.join(g, r).wait
	}
	asked := w.forward(g, r)
	if asked == nil {
		return w.join(g, r).wait
	}
	return func(ctx context.Context) error { return settle(ctx, asked, w.here(g, r)) }
}

// forward asks the owner of a target for a round. It returns nil when this process is to run it.
func (w *Worker) forward(g group, r request) *route.Forwarded {
	return w.sharing.Forward(route.Round{Mapping: w.places[g.mapping], Target: g.target, Source: r.source,
		Fence: r.fence, Trace: r.trace})
}

// here runs a round that another process was asked for.
func (w *Worker) here(g group, r request) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		r.here = true
		return w.join(g, r).wait(ctx)
	}
}

// errForwarded ends a round after a conflict, when the owner of the target was asked for it.
var errForwarded = errors.New("the round was forwarded")

// round runs the round of a batch, and ends the batch. After a conflict it leaves the round to the owner of the target,
// so that there are no further conflicts of these two. Others may join batches of the group meanwhile: if the owner
// takes this process for the owner, each runs the other's rounds.
func (w *Worker) round(ctx context.Context, turn *mapping.Turn, g group, b *batch) {
	var asked []*route.Forwarded // for each of the sources; nil: it is run here
	conflict := false
	err := turn.Reconcile(ctx, b.sources, b.fence, func() error {
		if w.sharing == nil {
			return nil
		}
		conflict = true
		w.contended.add(g)
		if b.here {
			return nil
		}
		if asked = w.forwardAll(g, b); asked == nil {
			return nil
		}
		return errForwarded
	})
	if w.sharing != nil && !conflict {
		w.contended.rounded(g)
	}
	if asked == nil {
		b.end(err)
		return
	}
	w.runners.Go(func() { b.end(w.settleAll(ctx, g, b, asked)) })
}

// forwardAll asks the owner of a target for the round of each source of a batch. It returns nil when this process is to
// run all.
func (w *Worker) forwardAll(g group, b *batch) (asked []*route.Forwarded) {
	for _, source := range b.sources {
		f := w.forward(g, request{source: source, fence: b.fence, trace: b.trace})
		if f == nil && asked == nil {
			return nil
		}
		asked = append(asked, f)
	}
	return asked
}

// settleAll waits for the rounds of a batch, and runs those here that have not succeeded.
func (w *Worker) settleAll(ctx context.Context, g group, b *batch, asked []*route.Forwarded) error {
	var all errgroup.Group
	for i, source := range b.sources {
		all.Go(func() error {
			here := w.here(g, request{source: source, fence: b.fence, trace: b.trace})
			if asked[i] == nil {
				return here(ctx)
			}
			return settle(ctx, asked[i], here)
		})
	}
	return all.Wait()
}

// settle waits for a round that another process was asked for. If that does not succeed, for any reason, settle runs
// the round here, which is possible at any time. The error of the round is then that of this process.
func settle(ctx context.Context, asked waiter, here func(ctx context.Context) error) error {
	if err := asked.Wait(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	return here(ctx)
}

// Run runs a round that another process asks for, together with those of events that this process has received, and
// calls done when it has ended. It does not block.
func (w *Worker) Run(r route.Round, done func(error)) {
	mappings := w.set.Mappings()
	if r.Mapping < 0 || r.Mapping >= len(mappings) || r.Target == "" || r.Source == "" {
		done(errs.New(errs.Invalid, "mapping: another process asks for a round of a mapping that there is not"))
		return
	}
	w.join(group{&mappings[r.Mapping], r.Target},
		request{source: r.Source, fence: r.Fence, trace: r.Trace, here: true, notify: done})
}
