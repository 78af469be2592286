// Package claims makes the claims of objects that there were before a store had unique fields.
//
// A store trusts its claims only once every object has its own: until then a value without a claim may be that of an
// object, so no write can give an object such a value. A Holder remembers in a store by which definition all claims
// were made: the unique fields, and the generation of the claims, which is another one after a restore or a migration.
//
// Claims that were complete are so no more when a process without the definition writes. So each process looks at the
// definitions from time to time, and replaces those that are not its own. As long as processes differ, claims are
// incomplete for all.
package claims

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

const (
	interval    = 10 * time.Second
	quietFor    = 2*interval + interval/2 // without another definition, until existing objects are read
	callTimeout = 10 * time.Second
	stopTimeout = 2 * time.Second
	retryMin    = time.Second
	retryMax    = time.Minute
	pageSize    = 500
	atOnce      = 64 // objects whose claims are made at once
	maxNamed    = 20 // duplicates that are logged
)

// stateUUID is the object that holds the state.
const stateUUID = "UNIQUE"

// state is what the processes of an installation share about unique fields.
type state struct {
	Stores map[string]definition `json:"stores"`
}

type definition struct {
	Is       string `json:"is"`       // fields and generation
	Set      string `json:"set"`      // unique for each time that it was set
	Complete bool   `json:"complete"` // every object has its claims
}

// Options configure a Holder.
type Options struct {
	Set    *store.Set
	State  *store.Store // holds the state
	Logger *slog.Logger
	Alone  bool // no other process uses the stores

	interval, quiet time.Duration
}

// Holder has the stores of a process trust their claims once they are complete, and completes them.
type Holder struct {
	opts   Options
	shared store.Shared[state]
	own    map[string]string // definitions of stores with unique fields

	cancel  context.CancelFunc
	running sync.WaitGroup
	current atomic.Pointer[state]
	seen    map[string]time.Time // when a definition was seen first, by Set; used by one goroutine
	failed  string               // the last error, so that it is logged once
}

func newHolder(o Options) *Holder {
	h := &Holder{
		opts: o, shared: store.Shared[state]{Store: o.State, UUID: stateUUID, What: "what is stored about unique fields"},
		own: map[string]string{}, seen: map[string]time.Time{},
	}
	if h.opts.interval == 0 {
		h.opts.interval, h.opts.quiet = interval, quietFor
	}
	for name, s := range o.Set.Stores() {
		if s.HasUnique() {
			h.own[name] = definitionOf(s)
		}
	}
	return h
}

func definitionOf(s *store.Store) string {
	var names []string
	for _, fields := range s.UniqueFields() {
		names = append(names, store.ConstraintName(fields))
	}
	slices.Sort(names)
	return strings.Join(names, ";") + " " + s.ClaimsGeneration()
}

// Start has the stores trust claims that are complete, makes those of stores that are empty, and the others in the
// background. It must be called before the process writes objects.
func Start(ctx context.Context, o Options) (*Holder, error) {
	h := newHolder(o)
	for delays := backoff.New(retryMin, retryMax); ; {
		err := h.poll(ctx)
		if err == nil {
			err = h.completeEmpty(ctx)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errs.Unavailable) {
			return nil, err
		}
		h.report(err)
		if delays.Wait(ctx) != nil {
			return nil, err
		}
	}
	running, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.running.Go(func() { h.run(running) })
	return h, nil
}

// Load has the stores of a command trust claims that are complete.
func Load(ctx context.Context, o Options) error { return newHolder(o).poll(ctx) }

// Complete makes all claims for a command that writes objects while nothing serves them.
func Complete(ctx context.Context, o Options) error {
	h := newHolder(o)
	if err := h.poll(ctx); err != nil {
		return err
	}
	for _, name := range h.incomplete() {
		if err := h.fill(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Close ends what is in progress: the next start begins again.
func (h *Holder) Close() {
	h.cancel()
	h.running.Wait()
	// Writes since the last poll were made by this process too: whoever has another definition learns of it.
	if !h.opts.Alone {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := h.poll(ctx); err != nil {
			h.opts.Logger.Warn("other processes may not notice that this one had other unique fields; `belfry verify` compares them", "error", err)
		}
	}
}

// Incomplete returns the stores whose claims are not complete yet.
func (h *Holder) Incomplete() []string { return h.incomplete() }

func (h *Holder) run(ctx context.Context) {
	retries := backoff.New(retryMin, retryMax)
	for ctx.Err() == nil {
		err := h.poll(ctx)
		if err == nil {
			err = h.fillDue(ctx)
		}
		h.report(err)
		if err != nil {
			_ = retries.Wait(ctx)
			continue
		}
		retries.Reset()
		_ = backoff.Sleep(ctx, h.opts.interval)
	}
}

// report logs an error when it is another one than before.
func (h *Holder) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != h.failed && !errors.Is(err, errs.Canceled) {
		h.opts.Logger.Warn("the values of unique fields can't be collected; retrying", "error", err)
	}
	h.failed = text
}

// poll replaces the definitions that are not those of this process, and has its stores trust their claims, or not.
func (h *Holder) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := h.shared.Change(ctx, h.observe)
	if err != nil {
		return err
	}
	h.apply(&s)
	return nil
}

func (h *Holder) observe(s *state) (changed bool) {
	if s.Stores == nil {
		s.Stores = map[string]definition{}
	}
	for name := range s.Stores {
		if h.own[name] == "" && h.opts.Set.Store(name) != nil {
			delete(s.Stores, name)
			changed = true
		}
	}
	for name, is := range h.own {
		if s.Stores[name].Is != is {
			s.Stores[name] = definition{Is: is, Set: object.NewUUID()}
			changed = true
		}
	}
	return changed
}

func (h *Holder) apply(s *state) {
	h.current.Store(s)
	for name, is := range h.own {
		d := s.Stores[name]
		h.opts.Set.Store(name).TrustClaims(d.Is == is && d.Complete)
	}
}

func (h *Holder) incomplete() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(h.own)) {
		if !h.opts.Set.Store(name).TrustsClaims() {
			all = append(all, name)
		}
	}
	return all
}

// completeEmpty completes the stores that have no objects.
func (h *Holder) completeEmpty(ctx context.Context) error {
	for _, name := range h.incomplete() {
		page, _, err := h.opts.Set.Store(name).Scan(ctx, nil, 1)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			continue
		}
		if err := h.complete(ctx, name, h.current.Load().Stores[name].Set); err != nil {
			return err
		}
	}
	return nil
}

// fillDue makes the claims of stores of which no process has had another definition for a while.
func (h *Holder) fillDue(ctx context.Context) error {
	for _, name := range h.incomplete() {
		set := h.current.Load().Stores[name].Set
		first, known := h.seen[set]
		if !known {
			first = time.Now()
			h.seen[set] = first
		}
		if !h.opts.Alone && time.Since(first) < h.opts.quiet {
			continue
		}
		if err := h.fill(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// fill makes the claims of all objects of a store.
func (h *Holder) fill(ctx context.Context, name string) error {
	s, set := h.opts.Set.Store(name), h.current.Load().Stores[name].Set
	if err := backoff.Sleep(ctx, s.IndexLag()); err != nil {
		return err
	}
	began := time.Now()
	var mu sync.Mutex
	var claimed int
	var duplicates []store.UniqueFinding
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	objects := 0
	var failed error
	for o, err := range s.All(gctx, pageSize) {
		if failed = err; err != nil {
			break
		}
		objects++
		g.Go(func() error {
			made, found, err := s.Claim(gctx, o.UUID)
			mu.Lock()
			defer mu.Unlock()
			claimed += made
			duplicates = append(duplicates, found...)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		failed = err
	}
	if failed != nil {
		return errs.Wrap(failed, errs.KindOf(failed), "collecting the unique values of %s", name)
	}
	h.opts.Logger.Info("the unique values of a store are collected from its objects", "store", name, "objects", objects, "values", claimed, "duplicates", len(duplicates), "after", time.Since(began).Round(time.Millisecond))
	for i, d := range duplicates {
		if i == maxNamed {
			h.opts.Logger.Warn("more objects have equal values in unique fields; `belfry verify` lists them", "store", name, "more", len(duplicates)-maxNamed)
			break
		}
		h.opts.Logger.Warn("two objects have equal values in unique fields: change one of them, then run `belfry verify --repair`", "store", name, "fields", strings.Join(d.Fields, ", "), "uuid", d.UUID, "other", d.Other)
	}
	return h.complete(ctx, name, set)
}

// complete records that the claims of a store are complete, unless another definition was set since.
func (h *Holder) complete(ctx context.Context, name, set string) error {
	s, err := h.shared.Change(ctx, func(s *state) bool {
		d := s.Stores[name]
		if d.Set != set || d.Complete {
			return false
		}
		d.Complete = true
		s.Stores[name] = d
		return true
	})
	if err != nil {
		return err
	}
	h.apply(&s)
	return nil
}
