// Package walk passes once over all objects of a store in the background, at a limited rate. After a crash it continues
// at its stored place.
//
//	Page ──► Needs ──► Do, for so many objects at once ──► Save ──► the next Page
//	                                                        └─ none: Complete
//
// A walk saves its place once the objects before it are done. So the work on an object must be idempotent, and each
// object that existed when the walk began is done at least once. The walk may miss an object that is written meanwhile:
// something else must handle it, such as the worker that receives its event.
//
// Arrays of mappings, computed properties, claims of unique values, search indexes and the repair of missed events are
// walks. They share a Rate, and have one form of progress, which the console, the metrics and the log show.
package walk

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
)

const (
	logInterval = 30 * time.Second
	maxFailed   = 20 // objects that fail are logged

	// togetherAsOne is how many objects of a page count as one that is read: they are read together.
	togetherAsOne = 10
)

// Counts are the progress of a walk. Their stored names are those of fills.
type Counts struct {
	Done   int64 `json:"targets"`          // objects that are done, or passed over
	Read   int64 `json:"objects"`          // other objects that were read for them
	Failed int64 `json:"failed,omitempty"` // of those that are done: they can't be
}

// Progress is how far a walk is. A walk continues from a stored one.
type Progress struct {
	Began  time.Time `json:"began"`
	Cursor []byte    `json:"cursor,omitempty"` // objects before it are done
	Total  int64     `json:"total"`            // objects when it began, approximately
	Counts
	Before Counts `json:"before,omitzero"` // the counts of the objects before the cursor
}

// Options are those of a walk over objects of a type. Page, and one of Do and DoPage, are required.
type Options[T any] struct {
	// Page returns objects after a cursor, and the cursor after them; nil at the end.
	Page func(ctx context.Context, after []byte) (page []T, next []byte, err error)

	// Needs reports whether there is anything to do for an object, as the page has it: others are passed over. nil:
	// there is for each.
	Needs func(object T) bool

	// Do does it for an object. read is called with how many other objects it has read since the last call; it waits
	// for the rate, and its error ends Do.
	Do     func(ctx context.Context, object T, read func(objects int) error) error
	AtOnce int // objects; 0: one after the other, in the goroutine of Run

	// DoPage does it for all objects of a page at once, which it alone reads. Its error always ends the walk.
	DoPage func(ctx context.Context, page []T) error

	// Save stores the progress after a page, and Complete after the last one. An error ends the walk.
	Save, Complete func(ctx context.Context, p Progress) error

	// Passes reports that the error of an object lets the walk continue: the object counts as failed. nil: each error
	// ends the walk. One that is errs.Unavailable or errs.Canceled always does.
	Passes func(err error) bool

	Rate     *Rate // of the objects that are read; nil: no limit
	Together bool  // Do reads nothing besides the page
	Now      func() time.Time

	Logger *slog.Logger
	Text   Text
	Args   func(object T) []any // of the log of an object that has failed
}

// Text is how a walk is logged.
type Text struct {
	Kind, Name string // an attribute: mapping="Books in Authors.books"; "": none
	Begins     string
	Does       string // "filling the arrays of a mapping"
	Done       string // "the arrays of a mapping are filled"
}

// Walk is one pass over all objects, or the rest of one.
type Walk[T any] struct {
	o       Options[T]
	resumed bool

	mu sync.Mutex
	at Progress
}

// New returns a walk that begins, or continues where an earlier one has ended.
func New[T any](o Options[T], from Progress) *Walk[T] {
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Walk[T]{o: o, at: from, resumed: !from.Began.IsZero()}
	if !w.resumed {
		w.at.Began = o.Now().UTC()
	}
	w.at.Counts = w.at.Before
	return w
}

// Progress returns how far the walk is. It is safe for concurrent use.
func (w *Walk[T]) Progress() Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// Run walks to the end. It ends early by an error of its functions, or with ctx.
func (w *Walk[T]) Run(ctx context.Context) error {
	w.logBeginning()
	err := w.loggedRun(ctx)
	if err == nil {
		w.logEnd()
	}
	return err
}

// loggedRun is run, and logs the progress meanwhile, also if run panics.
func (w *Walk[T]) loggedRun(ctx context.Context) error {
	defer w.logNowAndThen()()
	return w.run(ctx)
}

func (w *Walk[T]) run(ctx context.Context) error {
	for {
		page, next, err := w.o.Page(ctx, w.at.Cursor)
		if err != nil {
			return err
		}
		do := w.page
		if w.o.DoPage != nil {
			do = w.pageAtOnce
		}
		if err := do(ctx, page); err != nil {
			return err
		}
		w.change(func(at *Progress) { at.Cursor, at.Before = next, at.Counts })
		save := w.o.Save
		if next == nil {
			save = w.o.Complete
		}
		if save != nil {
			if err := save(ctx, w.Progress()); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
	}
}

func (w *Walk[T]) change(change func(at *Progress)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.at)
}

// page does all objects of a page.
func (w *Walk[T]) page(ctx context.Context, page []T) error {
	together := 0
	one := func(ctx context.Context, object T) error { return w.one(ctx, object) }
	wait := func() error { return nil }
	if w.o.AtOnce > 1 {
		g, doing := errgroup.WithContext(ctx)
		g.SetLimit(w.o.AtOnce)
		one = func(_ context.Context, object T) error {
			g.Go(func() error { return w.one(doing, object) })
			return doing.Err()
		}
		wait = g.Wait
	}
	var err error
	for _, object := range page {
		if w.o.Needs != nil && !w.o.Needs(object) {
			together++
			w.change(func(at *Progress) { at.Done++ })
			continue
		}
		if w.o.Together {
			together++
		}
		if err = one(ctx, object); err != nil {
			break
		}
	}
	if waited := wait(); waited != nil {
		err = waited
	}
	if err != nil {
		return err
	}
	return w.waitTogether(ctx, together)
}

// pageAtOnce does all objects of a page by DoPage.
func (w *Walk[T]) pageAtOnce(ctx context.Context, page []T) error {
	if err := w.o.DoPage(ctx, page); err != nil {
		return err
	}
	w.change(func(at *Progress) { at.Done += int64(len(page)) })
	return w.waitTogether(ctx, len(page))
}

// waitTogether waits for the rate after so many objects that are read together.
func (w *Walk[T]) waitTogether(ctx context.Context, objects int) error {
	return w.o.Rate.Wait(ctx, (objects+togetherAsOne-1)/togetherAsOne)
}

// one does one object. One that fails keeps no other from being done.
func (w *Walk[T]) one(ctx context.Context, object T) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err := w.o.Do(ctx, object, func(objects int) error {
		w.change(func(at *Progress) { at.Read += int64(objects) })
		return w.o.Rate.Wait(ctx, objects)
	})
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, errs.Unavailable) || errors.Is(err, errs.Canceled) || w.o.Passes == nil ||
			!w.o.Passes(err) {
			return err
		}
		w.fail(object, err)
	}
	w.change(func(at *Progress) { at.Done++ })
	if w.o.Together {
		return nil
	}
	return w.o.Rate.Wait(ctx, 1)
}

func (w *Walk[T]) fail(object T, err error) {
	failed := int64(0)
	w.change(func(at *Progress) { at.Failed++; failed = at.Failed })
	if w.o.Logger == nil || failed > maxFailed {
		return
	}
	args := append(w.args(), w.o.Args(object)...)
	w.o.Logger.Warn("an object can't be filled; `belfry verify` shows what it lacks", append(args, "error", err)...)
}

// args are the attributes of all lines of the log.
func (w *Walk[T]) args(more ...any) []any {
	if w.o.Text.Kind == "" {
		return more
	}
	return append([]any{w.o.Text.Kind, w.o.Text.Name}, more...)
}

func (w *Walk[T]) logBeginning() {
	at := w.Progress()
	switch {
	case w.o.Logger == nil:
	case w.resumed:
		w.o.Logger.Info("continuing: "+w.o.Text.Does, w.args("done", at.Done, "total", at.Total)...)
	case at.Total > 0: // a new installation has nothing to fill
		w.o.Logger.Info(w.o.Text.Begins, w.args("total", at.Total)...)
	}
}

// logNowAndThen logs how far the walk is until stop is called.
func (w *Walk[T]) logNowAndThen() (stop func()) {
	if w.o.Logger == nil {
		return func() {}
	}
	var logging sync.WaitGroup
	ended := make(chan struct{})
	logging.Go(func() {
		tick := time.NewTicker(logInterval)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				at := w.Progress()
				w.o.Logger.Info(w.o.Text.Does, w.args("done", at.Done, "total", at.Total, "read", at.Read)...)
			}
		}
	})
	return func() {
		close(ended)
		logging.Wait()
	}
}

func (w *Walk[T]) logEnd() {
	if w.o.Logger == nil {
		return
	}
	at := w.Progress()
	args := w.args("done", at.Done, "read", at.Read, "after", w.o.Now().Sub(at.Began).Round(time.Millisecond))
	switch {
	case at.Failed > 0:
		w.o.Logger.Error(w.o.Text.Done+", but for some; `belfry verify` shows what they lack",
			append(args, "failed", at.Failed)...)
	case at.Done > 0:
		w.o.Logger.Info(w.o.Text.Done, args...)
	}
}
