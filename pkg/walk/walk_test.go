package walk_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/walk"
)

// numbers are objects: 0 to n-1, in pages of ten. The cursor is the number after a page.
type numbers struct {
	n    int
	mu   sync.Mutex
	done []int
}

func (s *numbers) page(_ context.Context, after []byte) (page []int, next []byte, err error) {
	from := 0
	if after != nil {
		if from, err = strconv.Atoi(string(after)); err != nil {
			return nil, nil, err
		}
	}
	for i := from; i < min(from+10, s.n); i++ {
		page = append(page, i)
	}
	if from+10 < s.n {
		next = []byte(strconv.Itoa(from + 10))
	}
	return page, next, nil
}

func (s *numbers) do(_ context.Context, i int, read func(objects int) error) error {
	s.mu.Lock()
	s.done = append(s.done, i)
	s.mu.Unlock()
	return read(2)
}

func options(s *numbers) walk.Options[int] { return walk.Options[int]{Page: s.page, Do: s.do} }

func TestAWalkDoesAllObjects(t *testing.T) {
	for _, atOnce := range []int{0, 4} {
		s := &numbers{n: 25}
		o := options(s)
		o.AtOnce = atOnce
		o.Needs = func(i int) bool { return i%5 != 0 }
		var saved []string
		o.Save = func(_ context.Context, p walk.Progress) error {
			saved = append(saved, string(p.Cursor))
			if p.Before != p.Counts || p.Done != int64(10*len(saved)) {
				t.Errorf("%+v", p)
			}
			return nil
		}
		var complete walk.Progress
		o.Complete = func(_ context.Context, p walk.Progress) error { complete = p; return nil }
		if err := walk.New(o, walk.Progress{Total: 25}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(s.done)
		if len(s.done) != 20 || len(slices.Compact(s.done)) != 20 || slices.Contains(s.done, 5) {
			t.Errorf("done: %v", s.done)
		}
		if !slices.Equal(saved, []string{"10", "20"}) || complete.Cursor != nil ||
			complete.Counts != (walk.Counts{Done: 25, Read: 40}) || complete.Total != 25 {
			t.Errorf("saved %v, then %+v", saved, complete)
		}
	}
}

// A page that is done at once counts once it is done. Its error ends the walk, whatever objects may do.
func TestAWalkDoesAPageAtOnce(t *testing.T) {
	s := &numbers{n: 25}
	o := walk.Options[int]{Page: s.page, Passes: func(error) bool { return true }}
	failed := errs.New(errs.Mismatch, "no")
	fails := true
	o.DoPage = func(_ context.Context, page []int) error {
		if fails && page[0] == 20 {
			return failed
		}
		s.done = append(s.done, page...)
		return nil
	}
	w := walk.New(o, walk.Progress{Total: 25})
	if err := w.Run(t.Context()); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	p := w.Progress()
	if string(p.Cursor) != "20" || p.Counts != (walk.Counts{Done: 20}) {
		t.Errorf("%+v", p)
	}
	fails = false
	w = walk.New(o, p)
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := w.Progress(); len(s.done) != 25 || s.done[24] != 24 || p.Done != 25 {
		t.Errorf("done: %v, %+v", s.done, p)
	}
}

func TestAWalkContinuesWhereItEnded(t *testing.T) {
	s := &numbers{n: 25}
	o := options(s)
	var stored walk.Progress
	o.Save = func(_ context.Context, p walk.Progress) error { stored = p; return nil }
	do := o.Do
	o.Do = func(ctx context.Context, i int, read func(int) error) error {
		if i == 13 {
			return errs.New(errs.Unavailable, "it can't be reached")
		}
		return do(ctx, i, read)
	}
	o.Passes = func(error) bool { return true } // but it is not about the object
	w := walk.New(o, walk.Progress{})
	if err := w.Run(t.Context()); !errors.Is(err, errs.Unavailable) {
		t.Fatal(err)
	}
	if w.Progress().Done != 13 || stored.Done != 10 {
		t.Errorf("%+v, stored %+v", w.Progress(), stored)
	}
	o.Do, s.done = do, nil
	w = walk.New(o, stored)
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.done[0] != 10 || len(s.done) != 15 || w.Progress().Done != 25 || !w.Progress().Began.Equal(stored.Began) {
		t.Errorf("%v %+v", s.done, w.Progress())
	}
}

// A progress that was stored within a page has counts of objects that are done again.
func TestAWalkCountsAnObjectOnce(t *testing.T) {
	s := &numbers{n: 25}
	from := walk.Progress{Began: time.Unix(1, 0), Cursor: []byte("10"),
		Counts: walk.Counts{Done: 17, Read: 34, Failed: 2}, Before: walk.Counts{Done: 10, Read: 20, Failed: 1}}
	w := walk.New(options(s), from)
	if err := w.Run(t.Context()); err != nil || w.Progress().Counts != (walk.Counts{Done: 25, Read: 50, Failed: 1}) {
		t.Errorf("%+v, %v", w.Progress(), err)
	}
}

func TestAnObjectThatFailsIsPassedOver(t *testing.T) {
	wrong := errs.New(errs.TooLarge, "17 MB")
	for _, passes := range []bool{false, true} {
		s := &numbers{n: 25}
		o := options(s)
		o.Do = func(context.Context, int, func(int) error) error { return wrong }
		o.Passes = func(err error) bool { return passes && errors.Is(err, wrong) }
		var logged bytes.Buffer
		o.Logger, o.Args = slog.New(slog.NewTextHandler(&logged, nil)), func(i int) []any { return []any{"number", i} }
		o.Text = walk.Text{Kind: "store", Name: "Numbers", Done: "all is done"}
		w := walk.New(o, walk.Progress{})
		if err := w.Run(t.Context()); (err == nil) != passes {
			t.Fatal(err)
		}
		if !passes {
			continue
		}
		if p := w.Progress(); p.Failed != 25 || p.Done != 25 {
			t.Errorf("%+v", p)
		}
		if n := bytes.Count(logged.Bytes(), []byte("number=")); n != 20 ||
			!bytes.Contains(logged.Bytes(), []byte("all is done, but for some")) {
			t.Errorf("%d objects are logged: %s", n, &logged)
		}
	}
}

func TestAWalkEndsWithItsContext(t *testing.T) {
	for _, atOnce := range []int{0, 4} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &numbers{n: 1000}
		o := options(s)
		o.AtOnce, o.Passes = atOnce, func(error) bool { return true }
		var n atomic.Int64
		o.Do = func(ctx context.Context, _ int, _ func(int) error) error {
			if n.Add(1) == 5 {
				cancel()
			}
			return ctx.Err()
		}
		w := walk.New(o, walk.Progress{})
		if err := w.Run(ctx); !errors.Is(err, context.Canceled) || n.Load() > 10 || w.Progress().Failed > 0 {
			t.Errorf("%d, %v, %+v", n.Load(), err, w.Progress())
		}
	}
}

// Walks share a rate. Objects that are only read past, or that are read together, count as a tenth.
func TestWalksAreNoFasterThanTheirRate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*walk.Options[int])
		want   time.Duration // of two walks over 100 objects, at 10 a second
	}{
		"objects and those that are read for them": {func(*walk.Options[int]) {}, time.Minute},
		"at once":         {func(o *walk.Options[int]) { o.AtOnce = 8 }, time.Minute},
		"passed over":     {func(o *walk.Options[int]) { o.Needs = func(int) bool { return false } }, 2 * time.Second},
		"read together":   {func(o *walk.Options[int]) { o.Together = true }, 42 * time.Second},
		"without a limit": {func(o *walk.Options[int]) { o.Rate = nil }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			rate, began := walk.NewRate(10), time.Now()
			var walking sync.WaitGroup
			for range 2 {
				s := &numbers{n: 100}
				o := options(s)
				o.Rate = rate
				test.change(&o)
				walking.Go(func() {
					if err := walk.New(o, walk.Progress{}).Run(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			walking.Wait()
			if took := time.Since(began); took < test.want*99/100 || took > test.want*101/100 {
				t.Errorf("%s: %s, expected %s", name, took, test.want)
			}
		})
	}
}

func TestARateChangesAndMakesUpForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(r *walk.Rate, objects int) time.Duration {
			began := time.Now()
			if err := r.Wait(t.Context(), objects); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		r := walk.NewRate(10)
		for range 2 {
			time.Sleep(time.Hour) // nothing is read
			if d := took(r, 10); d != time.Second {
				t.Error(d)
			}
		}
		r.Set(100)
		if d := took(r, 100); d != time.Second {
			t.Error(d)
		}
		r.Set(0)
		if d := took(r, 1_000_000); d != 0 {
			t.Error(d)
		}
	})
}

func TestAWalkIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		s := &numbers{n: 25}
		o := options(s)
		o.Logger = slog.New(slog.NewTextHandler(&logged,
			&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
					return slog.Attr{}
				}
				return a
			}}))
		o.Text = walk.Text{Kind: "store", Name: "Numbers", Begins: "the numbers are new", Does: "adding the numbers",
			Done: "the numbers are added"}
		do := o.Do
		o.Do = func(ctx context.Context, i int, read func(int) error) error {
			time.Sleep(2100 * time.Millisecond)
			return do(ctx, i, read)
		}
		var stored walk.Progress
		o.Save = func(_ context.Context, p walk.Progress) error { stored = p; return nil }
		if err := walk.New(o, walk.Progress{Total: 25}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := walk.New(o, stored).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := `msg="the numbers are new" store=Numbers total=25
msg="adding the numbers" store=Numbers done=14 total=25 read=28
msg="the numbers are added" store=Numbers done=25 read=50 after=52.5s
msg="continuing: adding the numbers" store=Numbers done=20 total=25
msg="the numbers are added" store=Numbers done=25 read=50 after=1m3s
`
		if logged.String() != want {
			t.Errorf("logged:\n%s\nexpected:\n%s", &logged, want)
		}
	})
}

// A walk ends by an error of any of its functions, at any call. The next one continues from the last place that was
// stored, and misses no object.
func TestAWalkThatIsInterruptedAnywhereIsCompleted(t *testing.T) {
	lost := errors.New("the process has ended")
	for _, atOnce := range []int{0, 4} {
		for step := int64(1); ; step++ {
			s := &numbers{n: 25}
			var calls atomic.Int64
			ends := func() bool { return calls.Add(1) == step }
			o := options(s)
			o.AtOnce = atOnce
			var stored walk.Progress
			complete := false
			save := func(p walk.Progress, last bool) error {
				if ends() {
					return lost
				}
				stored, complete = p, last
				return nil
			}
			o.Save = func(_ context.Context, p walk.Progress) error { return save(p, false) }
			o.Complete = func(_ context.Context, p walk.Progress) error { return save(p, true) }
			o.Page = func(ctx context.Context, after []byte) ([]int, []byte, error) {
				if ends() {
					return nil, nil, lost
				}
				return s.page(ctx, after)
			}
			o.Do = func(ctx context.Context, i int, read func(int) error) error {
				if ends() {
					return lost
				}
				return s.do(ctx, i, read)
			}
			err := walk.New(o, stored).Run(t.Context())
			if calls.Load() < step {
				if err != nil || step < 25 {
					t.Fatalf("step %d: %v", step, err)
				}
				break
			}
			if !errors.Is(err, lost) || complete {
				t.Fatalf("step %d: %v, complete %v", step, err, complete)
			}
			calls.Store(step)
			if err := walk.New(o, stored).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			slices.Sort(s.done)
			if all := slices.Compact(slices.Clone(s.done)); len(all) != 25 || len(s.done) > 25+10 || !complete ||
				stored.Done != 25 || stored.Read != 50 {
				t.Errorf("step %d, %d at once: done %v, stored %+v, complete %v", step, atOnce, s.done, stored,
					complete)
			}
		}
	}
}

// The state is one word for the console, whatever the kind.
func TestTheStateOfAWalk(t *testing.T) {
	for want, s := range map[string]walk.Status{
		"due":                           {},
		"in progress":                   {Running: true},
		"waiting for other processes":   {Waiting: true, Running: true},
		"repairing after missed events": {Filled: true, Repairing: true, Running: true},
		"complete":                      {Filled: true},
		"complete, but for some":        {Filled: true, Counts: walk.Counts{Failed: 1}},
	} {
		if got := s.State(); got != want {
			t.Errorf("%q for %+v, expected %q", got, s, want)
		}
	}
}
