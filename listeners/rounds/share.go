package rounds

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"belfry/listeners/mapping/route"
	"belfry/pkg/errs"
)

// Waiter is a round that another process was asked for. Wait returns nil once that has succeeded.
type Waiter interface {
	Wait(ctx context.Context) error
}

// Begin begins the round of an event of a source: another process's, if the target is contended and another's, or one
// of this process. With fence, a client waits for it. The returned function waits for it, too.
func (r *Rounds) Begin(k Key, source string, fence bool, trace string) (wait func(ctx context.Context) error) {
	q := request{source: source, fence: fence, trace: trace}
	if r.opts.Sharing == nil || !r.contended.has(k) {
		return r.join(k, q).wait
	}
	asked := r.forward(k, q)
	if asked == nil {
		return r.join(k, q).wait
	}
	return func(ctx context.Context) error { return Settle(ctx, asked, r.here(k, q)) }
}

// forward asks the owner of a target for a round. It returns nil when this process is to run it.
func (r *Rounds) forward(k Key, q request) *route.Forwarded {
	return r.opts.Sharing.Forward(route.Round{Mapping: r.places[k.Mapping], Target: k.Target, Owner: k.Owner,
		Source: q.source, Fence: q.fence, Trace: q.trace})
}

// here runs a round that another process was asked for.
func (r *Rounds) here(k Key, q request) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		q.here = true
		return r.join(k, q).wait(ctx)
	}
}

// ErrForwarded ends a round after a conflict, when the owner of the target was asked for it.
var ErrForwarded = errors.New("the round was forwarded")

// round runs the round of a batch, and ends the batch. After a conflict it leaves the round to the owner of the target,
// so that there are no further conflicts of these two. Others may join batches of the key meanwhile: if the owner
// takes this process for the owner, each runs the other's rounds.
func (r *Rounds) round(ctx context.Context, turn Turn, k Key, b *batch) {
	var asked []*route.Forwarded // for each of the sources; nil: it is run here
	conflict := false
	err := turn.Reconcile(ctx, b.sources, b.fence, func() error {
		if r.opts.Sharing == nil {
			return nil
		}
		conflict = true
		r.contended.add(k)
		if b.here {
			return nil
		}
		if asked = r.forwardAll(k, b); asked == nil {
			return nil
		}
		return ErrForwarded
	})
	if r.opts.Sharing != nil && !conflict {
		r.contended.rounded(k)
	}
	if asked == nil {
		b.end(err)
		return
	}
	r.runners.Go(func() { b.end(r.settleAll(ctx, k, b, asked)) })
}

// forwardAll asks the owner of a target for the round of each source of a batch. It returns nil when this process is to
// run all.
func (r *Rounds) forwardAll(k Key, b *batch) (asked []*route.Forwarded) {
	for _, source := range b.sources {
		f := r.forward(k, request{source: source, fence: b.fence, trace: b.trace})
		if f == nil && asked == nil {
			return nil
		}
		asked = append(asked, f)
	}
	return asked
}

// settleAll waits for the rounds of a batch, and runs those here that have not succeeded.
func (r *Rounds) settleAll(ctx context.Context, k Key, b *batch, asked []*route.Forwarded) error {
	var all errgroup.Group
	for i, source := range b.sources {
		all.Go(func() error {
			here := r.here(k, request{source: source, fence: b.fence, trace: b.trace})
			if asked[i] == nil {
				return here(ctx)
			}
			return Settle(ctx, asked[i], here)
		})
	}
	return all.Wait()
}

// Settle waits for a round that another process was asked for. If that does not succeed, for any reason, Settle runs
// the round here, which is possible at any time. The error of the round is then that of this process.
func Settle(ctx context.Context, asked Waiter, here func(ctx context.Context) error) error {
	if err := asked.Wait(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	return here(ctx)
}

// Run runs a round that another process asks for, together with those of events that this process has received, and
// calls done when it has ended. It does not block.
func (r *Rounds) Run(asked route.Round, done func(error)) {
	place := asked.Mapping - r.opts.First
	if place < 0 || place >= len(r.opts.Mappings) || asked.Target == "" || asked.Source == "" {
		done(errs.New(errs.Invalid, "%s: another process asks for a round of a mapping that there is not", r.opts.Name))
		return
	}
	k := Key{Mapping: &r.opts.Mappings[place], Target: asked.Target, Owner: asked.Owner}
	r.join(k, request{source: asked.Source, fence: asked.Fence, trace: asked.Trace, here: true, notify: done})
}
