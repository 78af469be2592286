package mapping

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"belfry/listeners/mapping/route"
	"belfry/pkg/errs"
	"belfry/pkg/event"
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

// begin begins the round of an event for a group: another process's, if the target is contended and another's, or one of this
// process. The returned function waits for it.
func (w *Worker) begin(g group, e *event.Envelope) func(ctx context.Context) error {
	join := func() *batch { return w.join(g, e.UUID, awaited(e), e.Ctx.Trace, nil) }
	if w.sharing == nil || !w.contended.has(g) {
		return join().wait
	}
	asked := w.sharing.Forward(route.Round{Mapping: w.places[g.mapping], Target: g.target, Source: e.UUID, Fence: awaited(e), Trace: e.Ctx.Trace})
	if asked == nil {
		return join().wait
	}
	return func(ctx context.Context) error {
		return settle(ctx, asked, func(ctx context.Context) error { return join().wait(ctx) })
	}
}

// settle waits for a round that another process was asked for, and runs it here if that has not succeeded: for whatever
// reason, since a round can be run at any time. An error of the round itself is then that of this process.
func settle(ctx context.Context, asked waiter, here func(ctx context.Context) error) error {
	if err := asked.Wait(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	return here(ctx)
}

// Run runs a round that another process asks for, together with those of events that this process has received, and calls done
// when it has ended. It does not block.
func (w *Worker) Run(r route.Round, done func(error)) {
	mappings := w.set.Mappings()
	if r.Mapping < 0 || r.Mapping >= len(mappings) || r.Target == "" || r.Source == "" {
		done(errs.New(errs.Invalid, "mapping: another process asks for a round of a mapping that there is not"))
		return
	}
	w.join(group{&mappings[r.Mapping], r.Target}, r.Source, r.Fence, r.Trace, done)
}
