// Package run runs clients against a belfry in rounds: in each, faults are injected while clients write;
// after every few rounds everything settles, and all checks are made.
package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"belfry/test/chaos/check"
	"belfry/test/chaos/client"
	"belfry/test/chaos/history"
	"belfry/test/chaos/world"
	"belfry/test/kit"
)

// Options configures a run.
type Options struct {
	Deployment world.Deployment
	Nemeses    []world.Nemesis
	Loss       world.Nemesis                   // of the log
	LossEvery  int                             // in one of so many rounds, on average, the log is lost; 0: never
	Ready      func(ctx context.Context) error // returns when requests can be served; nil: at once
	Belfry     string                          // the program, for its own checks
	Serving    func() string                   // another one that serves, whose commands are used; "" or nil: Belfry
	Seed       uint64                          // for the report
	Tag        string                          // of everything that the run writes; a deployment has not seen it before
	Clients    int                             // 8 by default
	Writes     int                             // acknowledged writes in each phase of a round; 60 by default
	Ordered    bool                            // one process writes all objects
	Accounts   bool                            // clients register users
	ClockSteps bool                            // a nemesis steps the wall clock
	Long       bool                            // some faults last until they have all their effects
	Logf       func(format string, args ...any)
}

// patience is how long anything may take that ends by itself, on a processor that does nothing else.
const patience = 2 * time.Minute

// interval is how often counts are read.
const interval = 5 * time.Millisecond

// Run is a run. Its methods are called by one goroutine.
type Run struct {
	opts    Options
	history *history.History
	pool    *client.Pool
	log     *client.Log
	stop    func() // of the clients; nil while they are stopped
	report  Report

	states  map[history.Object]history.State // at the last check
	carried []history.Op
	known   map[string]bool
	deleted map[history.Object]uint64
	unseen  map[history.Object]bool
	marked  map[history.Object]bool

	loss     *history.Loss        // since the last check
	reported map[string]time.Time // when belfry noticed what listeners had missed, as of the last check
}

// New connects clients. Close has to be called.
func New(ctx context.Context, o Options) (*Run, error) {
	if o.Clients == 0 {
		o.Clients = 8
	}
	if o.Writes == 0 {
		o.Writes = 60
	}
	r := &Run{
		opts: o, history: history.New(), states: map[history.Object]history.State{}, known: map[string]bool{},
		deleted: map[history.Object]uint64{}, unseen: map[history.Object]bool{}, reported: map[string]time.Time{},
		report: Report{Seed: o.Seed, Faults: map[string]int{}, Kinds: map[check.Kind]int{}},
	}
	p := client.Options{Deployment: o.Deployment, Tag: o.Tag, Clients: o.Clients, History: r.history}
	if o.Accounts {
		p.Accounts = client.NewAccounts()
	}
	var err error
	if r.log, err = client.OpenLog(ctx, o.Deployment.Bus, o.Tag); err != nil {
		return nil, err
	}
	if r.pool, err = client.NewPool(p); err != nil {
		return nil, errors.Join(err, r.log.Close(ctx))
	}
	return r, nil
}

// Close stops the clients.
func (r *Run) Close(ctx context.Context) error {
	r.halt()
	r.pool.Close()
	return r.log.Close(ctx)
}

func (r *Run) halt() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// Round injects one fault, or two that overlap, while clients write. What is random is read from random.
func (r *Run) Round(ctx context.Context, random *rand.Rand) error {
	if r.stop == nil {
		r.stop = r.pool.Start(ctx, random.Uint64())
	}
	r.report.Rounds++
	if err := r.awaitWrites(ctx, 1+random.IntN(r.opts.Writes)); err != nil {
		return err
	}
	if len(r.opts.Nemeses) > 0 {
		if err := r.harm(ctx, random); err != nil {
			return err
		}
	}
	return r.awaitWrites(ctx, 1+random.IntN(r.opts.Writes))
}

// choose chooses the faults of a round. The loss of the log comes first, so that no fault of a disk prevents it.
func (r *Run) choose(random *rand.Rand) []world.Nemesis {
	order := random.Perm(len(r.opts.Nemeses))
	var faults []world.Nemesis
	for _, i := range order[:min(len(order), 1+random.IntN(4)/3)] {
		faults = append(faults, r.opts.Nemeses[i])
	}
	// A check has to be between two losses: it sees one. It also has to be before the first one: by then belfry
	// remembers which log there is.
	if r.opts.LossEvery > 0 && r.report.Checks > 0 && r.loss == nil && random.IntN(r.opts.LossEvery) == 0 {
		if r.opts.Loss.Alone {
			faults = faults[:1]
		}
		return append([]world.Nemesis{r.opts.Loss}, faults[1:]...)
	}
	return faults
}

// harm injects faults and heals them.
func (r *Run) harm(ctx context.Context, random *rand.Rand) error {
	faults, began := r.choose(random), r.history.Now()
	harmless := !slices.ContainsFunc(faults, func(n world.Nemesis) bool { return !n.Harmless })
	names := make([]string, len(faults))
	var heals []func(context.Context) error
	var failed []error
	for i, n := range faults {
		names[i] = n.Name
		heal, err := n.Inject(ctx, random)
		if err != nil {
			failed = append(failed, fmt.Errorf("injecting %s: %w", n.Name, err))
			break
		}
		heals = append(heals, heal)
		if n.Name == r.opts.Loss.Name {
			r.loss = &history.Loss{At: r.history.Now(), Received: r.log.Lost()}
		}
		r.report.Faults[n.Name]++
		r.report.Kills += n.Kills
		r.report.PowerCuts += n.PowerCuts
		if r.opts.Long && n.Full > 0 && random.IntN(3) == 0 {
			r.hold(ctx, math.MaxInt32, n.Full)
		} else {
			r.hold(ctx, random.IntN(2*r.opts.Writes), time.Duration(random.IntN(700))*time.Millisecond)
		}
	}
	r.logf("round %d: %s", r.report.Rounds, strings.Join(names, ", "))
	defer func() { r.logf("round %d: healed", r.report.Rounds) }()
	ctx, cancel := kit.Patience(ctx, patience)
	defer cancel()
	for _, heal := range slices.Backward(heals) {
		if err := heal(ctx); err != nil {
			failed = append(failed, fmt.Errorf("healing after %s: %w", strings.Join(names, ", "), err))
		}
	}
	if len(failed) == 0 && r.opts.Ready != nil {
		if err := r.opts.Ready(ctx); err != nil {
			failed = append(failed, fmt.Errorf("not ready after %s: %w", strings.Join(names, ", "), err))
		}
	}
	if len(failed) == 0 && slices.Contains(names, r.opts.Loss.Name) {
		failed = append(failed, r.log.Reopen(ctx))
	}
	if sent := r.history.TakeFailed(began); harmless {
		for _, op := range sent {
			r.history.Wrong(fmt.Sprintf("%s: it failed, and nothing happened but %s", op, strings.Join(names, ", ")))
		}
	}
	return errors.Join(failed...)
}

// Lost reports whether the log was lost since the last check.
func (r *Run) Lost() bool { return r.loss != nil }

// hold lets a fault last until so many requests have ended, or for a time.
func (r *Run) hold(ctx context.Context, requests int, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	enough := r.history.Counts().Requests() + requests
	for r.history.Counts().Requests() < enough && wait(ctx, interval) == nil {
		continue
	}
}

// awaitWrites waits until so many more writes were acknowledged.
func (r *Run) awaitWrites(ctx context.Context, more int) error {
	ctx, cancel := kit.Patience(ctx, patience)
	defer cancel()
	from := r.history.Counts().Acknowledged
	for n := 0; n < more; n = r.history.Counts().Acknowledged - from {
		if err := wait(ctx, interval); err != nil {
			return fmt.Errorf("%d of %d writes were acknowledged: %w", n, more, err)
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (r *Run) logf(format string, args ...any) {
	if r.opts.Logf != nil {
		r.opts.Logf("%5.1fs "+format, append([]any{time.Duration(r.history.Now()).Seconds()}, args...)...)
	}
}

// remember keeps what the next segment needs of this one.
func (r *Run) remember(s *history.Segment) {
	r.loss = nil
	for _, e := range s.Published() {
		r.known[e.ID] = true
		if e.Deleted() {
			r.deleted[e.Object()] = max(r.deleted[e.Object()], e.Revision)
		}
	}
	maps.Copy(r.unseen, check.Unseen(s))
	r.marked = check.Marked(s)
	r.states = maps.Clone(s.Final)
	for o, revision := range r.deleted {
		if !r.states[o].Exists() {
			r.states[o] = history.State{Revision: revision}
		}
	}
	made := map[string]bool{}
	for _, e := range s.Published() {
		made[e.Ctx.Request] = true
	}
	r.carried = nil
	for _, op := range s.Ops {
		if op.Kind.Writes() && op.Outcome == history.Unknown && !made[op.Request] {
			r.carried = append(r.carried, op)
		}
	}
}
