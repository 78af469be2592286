package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"belfry/pkg/console"
	"belfry/pkg/errs"
	"belfry/pkg/logctx"
	"belfry/pkg/verify"
)

// verifications implements console.Verifier.
type verifications struct {
	run func(ctx context.Context, o VerifyOptions, into *Report) error
	ctx context.Context // ends with the process
	log *slog.Logger

	mu      sync.Mutex
	last    *console.Verification // nil: none; it is replaced, never changed
	cancel  context.CancelFunc
	running sync.WaitGroup
}

var _ console.Verifier = (*verifications)(nil)

func (a *App) newVerifications() *verifications {
	ctx, cancel := context.WithCancel(context.Background())
	v := &verifications{ctx: ctx, log: a.log, run: func(ctx context.Context, o VerifyOptions, into *Report) error {
		return verifyAll(ctx, a.set, inOrder(a.binaries), o, verify.Options{RecheckFor: differenceTimeout}, into)
	}}
	a.onStop("verifications of the console", func(context.Context) error {
		cancel()
		v.running.Wait()
		return nil
	})
	return v
}

// Start implements console.Verifier.
func (v *verifications) Start(request context.Context, by, id string, repair, deep bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last != nil && v.last.Ended.IsZero() {
		return errs.New(errs.Conflict, "a verification is in progress already: wait for it, or stop it")
	}
	if v.ctx.Err() != nil {
		return errs.New(errs.Unavailable, "belfry is stopping")
	}
	ctx, cancel := context.WithCancel(logctx.With(v.ctx, logctx.Attrs(request)...))
	v.cancel = cancel
	v.last = &console.Verification{By: by, Request: id, Repair: repair, Deep: deep, Began: time.Now()}
	v.running.Go(func() {
		defer cancel()
		report := &Report{}
		err := v.run(ctx, VerifyOptions{Repair: repair, Deep: deep, Progress: func(p verify.Progress) {
			v.change(func(now *console.Verification) { now.Progress = p })
		}}, report)
		if err != nil && ctx.Err() == nil {
			v.log.ErrorContext(ctx, "a verification of the console has failed", "error", err)
		}
		v.change(func(now *console.Verification) {
			now.Ended, now.Err = time.Now(), err
			switch {
			case ctx.Err() != nil:
				now.Err = errs.New(errs.Canceled, "the run was stopped; what it had repaired stays repaired")
			case err == nil:
				now.Report, now.Binaries = report.Report, report.Binaries
			}
		})
	})
	return nil
}

// change replaces the last verification by a changed copy.
func (v *verifications) change(with func(*console.Verification)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := *v.last
	with(&now)
	v.last = &now
}

// Stop implements console.Verifier.
func (v *verifications) Stop() {
	v.mu.Lock()
	cancel := v.cancel
	v.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// Last implements console.Verifier.
func (v *verifications) Last() *console.Verification {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last
}
