package workers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/prom"
	"belfry/listeners/copies"
	"belfry/pkg/app/messaging"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/missed"
	"belfry/pkg/store"
)

const (
	lagInterval = 5 * time.Second // between two writes of a process
	lagShown    = 2 * time.Second // the least lag that a process reports to others
	lagGone     = time.Minute     // without a write until what a process has written no longer counts
	lagTimeout  = 2 * time.Second
)

// lagUUID is the object, in the store of positions, that has which copies are behind by the work of each process.
const lagUUID = "copies"

// lags is the value of that object.
type lags struct {
	Processes map[string]lagEntry `json:"processes"` // by the id of their run
}

// lagEntry is written by a process while copies are behind.
type lagEntry struct {
	Seen  time.Time            `json:"seen"`  // by its clock
	Since map[string]time.Time `json:"since"` // by the copies
}

// CopyLag knows how far copies are behind their sources: by the work that this process has in flight, by what others
// have written of theirs, and by the events that no process has yet.
type CopyLag struct {
	Served  *serving.Current
	Roles   serving.Roles
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Run     string // unique

	inFlight copies.InFlight
	running  part.Background
	written  bool // others may read an entry of this process; used by the background work, and then by stop
}

// Part returns the functions that start and stop it.
func (l *CopyLag) Part() serving.Part {
	return serving.Part{Name: "the lag of copies", Stop: l.stop,
		Start: func(context.Context, *serving.Generation) error {
			if !l.Roles.Has(plan.RoleOf(copies.Name)) {
				return nil
			}
			l.Metrics.MustRegister(l.collector())
			l.running.Every(lagInterval, func(ctx context.Context) bool {
				if l.Served.Now().Plan.Shared() {
					l.update(ctx)
				}
				return true
			})
			return nil
		}}
}

// follow returns the handler of the listener of copies that also keeps account of its work.
func (l *CopyLag) follow(w *copies.Worker, handle listener.Handler) listener.Handler {
	return func(ctx context.Context, e *listener.Event) error {
		end := l.inFlight.Begin(w, &e.Envelope, e.Sequence)
		err := handle(ctx, e)
		end(err)
		return err
	}
}

// All returns how far each of the copies is behind its source, in all processes.
func (l *CopyLag) All(ctx context.Context) []missed.CopyLag {
	ctx, cancel := context.WithTimeout(ctx, lagTimeout)
	defer cancel()
	since := l.own(ctx)
	for _, e := range l.others(ctx) {
		for of, at := range e.Since {
			older(since, of, at)
		}
	}
	return l.inOrder(since)
}

// own returns since when copies are behind, by the work of this process and the events that no process has.
func (l *CopyLag) own(ctx context.Context) map[string]time.Time {
	since := map[string]time.Time{}
	all := store.CopiesOf(l.Served.Now().Plan.Stores)
	if len(all) == 0 {
		return since
	}
	log := l.position(ctx)
	if attempts, parts := l.inFlight.Waiting(); attempts || parts {
		var retries *copies.Position
		if parts {
			retries = l.consumer(ctx, bus.StreamRetry)
		}
		l.inFlight.Settle(log, retries)
	}
	for of, at := range l.inFlight.Since() {
		older(since, of.String(), at)
	}
	if log == nil || !log.Pending {
		return since
	}
	for _, source := range copies.SourcesOf(all) {
		at, found := l.undelivered(ctx, source, log.Delivered)
		for _, k := range all {
			if found && k.Source == source {
				older(since, nameOf(k), at)
			}
		}
	}
	return since
}

// position returns the position of the listener in the log; nil: it can't be read.
func (l *CopyLag) position(ctx context.Context) *copies.Position {
	if l.Roles.Has(plan.RoleOf(copies.Name)) {
		return l.consumer(ctx, bus.StreamEvents)
	}
	all, err := messaging.Listeners(ctx, l.Served.Now().Bus) // a front may only list them
	for _, one := range all {
		if err == nil && one.Name == copies.Name {
			return &copies.Position{Delivered: one.Delivered, Pending: one.Lag > 0, Left: one.Unacked > 0}
		}
	}
	return nil
}

// consumer returns the position of the listener in a stream; nil: it can't be read.
func (l *CopyLag) consumer(ctx context.Context, stream string) (p *copies.Position) {
	b := l.Served.Now().Bus
	if err := messaging.Do(ctx, b, func(ctx context.Context) error {
		c, err := b.JetStream().Consumer(ctx, stream, copies.Name)
		if err != nil {
			return err
		}
		info := c.CachedInfo()
		p = &copies.Position{Delivered: info.Delivered.Stream, Acknowledged: info.AckFloor.Stream,
			Pending: info.NumPending > 0, Left: info.NumAckPending > 0}
		return nil
	}); err != nil {
		return nil
	}
	return p
}

// undelivered returns when the first event of a store that the listener has not received was stored.
func (l *CopyLag) undelivered(ctx context.Context, source string, delivered uint64) (first time.Time, found bool) {
	b := l.Served.Now().Bus
	for _, name := range []event.Name{event.StoreSaved, event.StoreUpdated, event.StoreDeleted} {
		asking, done := b.UntilDenied(ctx, eventlog.DirectGet)
		e, err := eventlog.Next(asking, b.Conn(), event.Filter(name, source), delivered+1)
		done()
		if err != nil && !errors.Is(err, errs.NotFound) {
			return first, found // what is known without
		}
		if err == nil && (!found || e.Time.Before(first)) {
			first, found = e.Time, true
		}
	}
	return first, found
}

// others returns what other processes have written in the last minute.
func (l *CopyLag) others(ctx context.Context) map[string]lagEntry {
	if !l.Served.Now().Plan.Shared() {
		return nil
	}
	written, _, err := l.shared().Get(ctx)
	if err != nil {
		return nil
	}
	delete(written.Processes, l.Run)
	maps.DeleteFunc(written.Processes, isGone)
	return written.Processes
}

func isGone(_ string, e lagEntry) bool { return time.Since(e.Seen).Abs() > lagGone }

func (l *CopyLag) shared() store.Shared[lags] {
	return store.Shared[lags]{Store: l.Served.Now().Set.Store(config.PositionStore), UUID: lagUUID,
		What: "which copies are behind"}
}

// update writes which copies are behind by the work of this process, for others. Nothing is written while none is.
func (l *CopyLag) update(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lagInterval)
	defer cancel()
	l.own(ctx) // without what others have done
	l.report(ctx, l.inFlight.Since())
}

func (l *CopyLag) report(ctx context.Context, behind map[copies.Of]time.Time) {
	since := map[string]time.Time{}
	for of, at := range behind {
		if time.Since(at) >= lagShown {
			since[of.String()] = at
		}
	}
	if len(since) > 0 || l.written {
		l.write(ctx, since)
	}
}

func (l *CopyLag) write(ctx context.Context, since map[string]time.Time) {
	_, _, err := l.shared().Change(ctx, func(all *lags) bool {
		maps.DeleteFunc(all.Processes, isGone)
		if all.Processes == nil {
			all.Processes = map[string]lagEntry{}
		}
		if delete(all.Processes, l.Run); len(since) > 0 {
			all.Processes[l.Run] = lagEntry{Seen: time.Now().UTC(), Since: since}
		}
		return true
	})
	if err == nil {
		l.written = len(since) > 0
	} else if ctx.Err() == nil {
		l.Log.Debug("which copies are behind can't be written", "error", err)
	}
}

// stop removes the entry of this process.
func (l *CopyLag) stop(ctx context.Context) error {
	err := l.running.Stop(ctx)
	if l.written {
		ctx, done := context.WithTimeout(ctx, time.Second)
		defer done()
		l.write(ctx, nil)
	}
	return err
}

func older(since map[string]time.Time, of string, at time.Time) {
	if known, has := since[of]; !has || at.Before(known) {
		since[of] = at
	}
}

func nameOf(k *store.Copies) string {
	return copies.Of{Store: k.Store, Reference: k.Reference}.String()
}

// inOrder returns the lag of all copies by their names.
func (l *CopyLag) inOrder(since map[string]time.Time) (all []missed.CopyLag) {
	for _, k := range store.CopiesOf(l.Served.Now().Plan.Stores) {
		one := missed.CopyLag{Copies: nameOf(k), Source: k.Source}
		if at, behind := since[one.Copies]; behind {
			one.Since, one.Seconds = at.UTC(), max(time.Since(at).Seconds(), 0.001) // clocks differ
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b missed.CopyLag) int {
		return cmp.Or(strings.Compare(a.Copies, b.Copies), strings.Compare(a.Source, b.Source))
	})
	return all
}

var copyLagDesc = prometheus.NewDesc("belfry_copy_lag_seconds",
	"The age of the oldest change whose copies are not made, by this process's work and by the events that none has.",
	[]string{"copies", "source"}, nil)

func (l *CopyLag) collector() prometheus.Collector {
	return prom.Computed(func(ctx context.Context, values prom.Values) {
		for _, one := range l.inOrder(l.own(ctx)) {
			values.Gauge(copyLagDesc, one.Seconds, one.Copies, one.Source)
		}
	}, copyLagDesc)
}
