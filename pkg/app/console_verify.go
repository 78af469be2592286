package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"belfry/config"
	"belfry/pkg/console"
	"belfry/pkg/errs"
	"belfry/pkg/logctx"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/verify"
)

// verifications implements console.Verifier. One run is in progress at a time in all processes that share the stores: a
// balancer may send each request of a browser to another of them. What they share is one record, which the process that runs
// it writes every few seconds, and in which others ask it to stop.
type verifications struct {
	run     func(ctx context.Context, o VerifyOptions, into *Report) error
	ctx     context.Context // ends with the process
	log     *slog.Logger
	records func() *store.Store
	beat    time.Duration // between two writes of a run
	now     func() time.Time

	mu      sync.Mutex
	id      string                // of the last run of this process
	last    *console.Verification // its state, which is newer than the record; it is replaced, never changed
	cancel  context.CancelFunc
	running sync.WaitGroup
}

var _ console.Verifier = (*verifications)(nil)

const (
	verificationBeat = 2 * time.Second

	// verificationSilence is after how long without a write a run counts as ended with its process.
	verificationSilence = time.Minute
)

func (a *App) newVerifications() *verifications {
	ctx, cancel := context.WithCancel(context.Background())
	v := &verifications{
		ctx: ctx, log: a.log, beat: verificationBeat, now: time.Now,
		// That a run goes forward is no change that listeners have to see.
		records: func() *store.Store {
			return a.now().set.Store(config.TokenStore).WithOptions(func(o *store.Options) { o.NoEvents = true })
		},
		run: func(ctx context.Context, o VerifyOptions, into *Report) error {
			now := a.now()
			return verifyAll(ctx, now.set, inOrder(now.binaries), o, verify.Options{RecheckFor: differenceTimeout}, into)
		},
	}
	a.onStop("verifications of the console", func(context.Context) error {
		cancel()
		v.running.Wait()
		return nil
	})
	return v
}

func errRunning() error {
	return errs.New(errs.Conflict, "a verification is in progress already: wait for it, or stop it")
}

// Start implements console.Verifier.
func (v *verifications) Start(request context.Context, by, id string, repair, deep bool) error {
	if v.ctx.Err() != nil {
		return errs.New(errs.Unavailable, "belfry is stopping")
	}
	run := object.NewUUID()
	first := console.Verification{By: by, Request: id, Repair: repair, Deep: deep, Began: v.now()}
	if err := v.claim(request, run, &first); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(logctx.With(v.ctx, logctx.Attrs(request)...))
	v.mu.Lock()
	v.id, v.last, v.cancel = run, &first, cancel
	v.mu.Unlock()
	v.running.Go(func() {
		defer cancel()
		done := make(chan struct{})
		var sharing sync.WaitGroup
		sharing.Go(func() { v.share(ctx, run, cancel, done) })
		report := &Report{}
		err := v.run(ctx, VerifyOptions{Repair: repair, Deep: deep, Progress: func(p verify.Progress) {
			v.change(run, func(now *console.Verification) { now.Progress = p })
		}}, report)
		if err != nil && ctx.Err() == nil {
			v.log.ErrorContext(ctx, "a verification of the console has failed", "error", err)
		}
		v.change(run, func(now *console.Verification) {
			now.Ended, now.Err = v.now(), err
			switch {
			case ctx.Err() != nil:
				now.Err = errs.New(errs.Canceled, "the run was stopped; what it had repaired stays repaired")
			case err == nil:
				now.Report, now.Binaries = report.Report, report.Binaries
			}
		})
		close(done)
		sharing.Wait()
	})
	return nil
}

// change replaces the state of a run of this process by a changed copy.
func (v *verifications) change(run string, with func(*console.Verification)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.id != run {
		return // another run has begun since, as this one could not be written for long
	}
	now := *v.last
	with(&now)
	v.last = &now
}

// own returns the state of a run of this process, nil if it is of another.
func (v *verifications) own(run string) *console.Verification {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.id != run {
		return nil
	}
	return v.last
}

// share writes the state of a run from time to time, and once it is done, and ends it if another process asks for that.
func (v *verifications) share(ctx context.Context, run string, stop context.CancelFunc, done <-chan struct{}) {
	tick := time.NewTicker(v.beat)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-tick.C:
		}
		stopped, err := v.write(context.WithoutCancel(ctx), run)
		switch {
		case err != nil:
			v.log.WarnContext(ctx, "the state of a verification of the console can't be written; other processes may not show it", "error", err)
		case stopped:
			stop()
		}
	}
}

// Stop implements console.Verifier.
func (v *verifications) Stop(ctx context.Context) error {
	asked := ""
	_, err := v.records().Mutate(asBelfry(ctx), verificationUUID, func(now store.Stored) (store.Mutation, error) {
		shared, err := readVerification(now)
		if asked = ""; err != nil || !shared.runs(v.now()) {
			return store.Mutation{}, err
		}
		asked = shared.ID
		shared.Stop = true
		return shared.mutation()
	})
	v.mu.Lock()
	cancel := v.cancel
	if asked != v.id {
		cancel = nil
	}
	v.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// Last implements console.Verifier.
func (v *verifications) Last(ctx context.Context) (*console.Verification, error) {
	stored, err := v.records().Get(asBelfry(ctx), verificationUUID)
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	shared, err := readVerification(stored)
	if err != nil {
		return nil, err
	}
	if own := v.own(shared.ID); own != nil {
		return own, nil
	}
	return shared.verification(v.now()), nil
}

// asBelfry returns a context of what belfry does by itself.
func asBelfry(ctx context.Context) context.Context { return store.WithCall(ctx, store.Call{}) }
