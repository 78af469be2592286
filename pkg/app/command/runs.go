package command

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"belfry/internal/logctx"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// runs are the runs of one kind that admins start in the console. One run is in progress at a time in all processes
// that share the stores, since a load balancer may send each request of a browser to another process. They share one
// record. The process of the run writes it every few seconds, and others request a stop in it.
type runs struct {
	kind    string          // for people
	uuid    string          // of the record
	ctx     context.Context // ends with the process
	log     *slog.Logger
	records func() *store.Store
	beat    time.Duration // between two writes of a run
	now     func() time.Time
	short   func(out any) any // the part of a result for the record; nil: all of it

	mu      sync.Mutex
	id      string // of the last run of this process
	last    *run   // its state, which is newer than the record; it is replaced, never changed
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// run is the state of one run.
type run struct {
	console.Run
	State state
}

// state is what is kept of a run, as JSON in its record: pointers to what is of the type of the operation.
type state struct {
	In       any `json:"in"` // nil: of a release that kept other states
	Progress any `json:"progress"`
	Out      any `json:"out,omitempty"`
}

const (
	runBeat = 2 * time.Second

	// runSilence is the time without a write after which a run counts as ended with its process.
	runSilence = time.Minute
)

func newRuns(h *Host, kind string) *runs {
	// Listeners do not need the progress of a run.
	records := func() *store.Store { return h.Records().WithOptions(func(o *store.Options) { o.NoEvents = true }) }
	return &runs{kind: kind, uuid: strings.ReplaceAll(kind, " ", "-"), ctx: h.Ctx, log: h.Log, records: records,
		beat: runBeat, now: time.Now}
}

func (r *runs) errRunning() error {
	return errs.New(errs.Conflict, "a %s is already in progress: wait for it, or stop it", r.kind)
}

// start starts a run, which calls change whenever its state changes.
func (r *runs) start(request context.Context, by, id string, of state,
	work func(ctx context.Context, change func(func(*state))) error) error {
	if r.ctx.Err() != nil {
		return errs.New(errs.Unavailable, "belfry is stopping")
	}
	uuid := object.NewUUID()
	first := run{console.Run{By: by, Request: id, Began: r.now()}, of}
	if err := r.claim(request, uuid, &first); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(logctx.With(r.ctx, logctx.Attrs(request)...))
	r.mu.Lock()
	r.id, r.last, r.cancel = uuid, &first, cancel
	r.mu.Unlock()
	r.running.Go(func() {
		defer cancel()
		done := make(chan struct{})
		var sharing sync.WaitGroup
		sharing.Go(func() { r.share(ctx, uuid, cancel, done) })
		err := work(ctx, func(with func(*state)) {
			r.change(uuid, func(now *run) { with(&now.State) })
		})
		switch {
		case err == nil:
		case ctx.Err() != nil:
			err = errs.New(errs.Canceled, "the run was stopped")
		case errs.KindOf(err) != errs.Canceled:
			r.log.ErrorContext(ctx, "a "+r.kind+" of the console has failed", "error", err)
		}
		r.change(uuid, func(now *run) { now.Ended, now.Err = r.now(), err })
		close(done)
		sharing.Wait()
	})
	return nil
}

// change replaces the state of a run of this process by a changed copy.
func (r *runs) change(uuid string, with func(*run)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id != uuid {
		return // another run has begun since, because this one could not be written for a long time
	}
	now := *r.last
	with(&now)
	r.last = &now
}

// own returns the state of a run of this process, nil if the run is of another process.
func (r *runs) own(uuid string) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id != uuid {
		return nil
	}
	return r.last
}

// share writes the state of a run at intervals and at its end, and ends the run if another process requests this.
func (r *runs) share(ctx context.Context, uuid string, stop context.CancelFunc, done <-chan struct{}) {
	tick := time.NewTicker(r.beat)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-tick.C:
		}
		stopped, err := r.write(context.WithoutCancel(ctx), uuid)
		switch {
		case err != nil:
			r.log.WarnContext(ctx,
				"the state of a "+r.kind+" of the console can't be written; other processes may not show it",
				"error", err)
		case stopped:
			stop()
		}
	}
}

// Stop ends the run that is in progress, if any, in any process.
func (r *runs) Stop(ctx context.Context) error {
	asked := ""
	_, err := r.records().Mutate(asBelfry(ctx), r.uuid, func(now store.Stored) (store.Mutation, error) {
		shared, err := readRun(now)
		if asked = ""; err != nil || !shared.lease().Held(r.now()) {
			return store.Mutation{}, err
		}
		asked = shared.ID
		shared.Stop = true
		return shared.mutation()
	})
	r.mu.Lock()
	cancel := r.cancel
	if asked != r.id {
		cancel = nil
	}
	r.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// current returns the run in progress, or else the last one, of all processes; nil if there was no run. read reads the
// state of a run of another process.
func (r *runs) current(ctx context.Context, read func(json.RawMessage) (state, error)) (*run, error) {
	stored, err := r.records().Get(asBelfry(ctx), r.uuid)
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	shared, err := readRun(stored)
	if err != nil {
		return nil, err
	}
	if own := r.own(shared.ID); own != nil {
		return own, nil
	}
	of, err := read(shared.State)
	if err != nil {
		return nil, errUnreadable(err)
	}
	return &run{shared.run(r.now()), of}, nil
}

// asBelfry returns a context for belfry's own actions.
func asBelfry(ctx context.Context) context.Context { return store.WithCall(ctx, store.Call{}) }
