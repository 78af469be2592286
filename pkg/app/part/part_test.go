package part

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/test/kit"
)

// script records what is called.
type script struct{ calls []string }

func (s *script) note(what, name string) { s.calls = append(s.calls, what+" "+name) }

// part returns a part whose functions are recorded; fails names the function that fails.
func (s *script) part(name, fails string) Part[*int] {
	do := func(what string) error {
		s.note(what, name)
		if what == fails {
			return errs.New(errs.Invalid, "no")
		}
		return nil
	}
	return Part[*int]{
		Name:  name,
		Start: func(context.Context, *int) error { return do("start") },
		Reload: func(context.Context, *int, *int) (Change, error) {
			return Change{
				Apply: func() { s.note("apply", name) }, Cancel: func() { s.note("cancel", name) },
				Settle: func(context.Context) {
					s.note("settle",
						name)
				}, Retire: func(context.Context) { s.note("retire", name) },
			}, do("prepare")
		},
		Stop:  func(context.Context) error { return do("stop") },
		Check: func() []string { return []string{name + " is slow"} },
	}
}

func (s *script) started(t *testing.T, parts ...Part[*int]) *List[*int] {
	t.Helper()
	l := NewList[*int](slog.New(slog.DiscardHandler))
	for _, p := range parts {
		if err := l.Start(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.calls = nil
	return l
}

func (s *script) want(t *testing.T, calls ...string) {
	t.Helper()
	if !slices.Equal(s.calls, calls) {
		t.Errorf("%q, want %q", s.calls, calls)
	}
}

func TestPartsChangeTogether(t *testing.T) {
	var s script
	l := s.started(t, s.part("a", ""),
		Part[*int]{Name: "fixed", Start: func(context.Context, *int) error { return nil }}, s.part("b", ""))
	settle, retire, err := l.Reload(t.Context(), nil, nil, func() { s.note("swap", "") })
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, "prepare a", "prepare b", "swap ", "apply a", "apply b")
	s.calls = nil
	settle(t.Context())
	s.want(t, "settle b", "settle a")
	s.calls = nil
	retire(t.Context())
	s.want(t, "retire b", "retire a")
}

// Whichever part can't be prepared: nothing has changed, and what was prepared before it is canceled.
func TestAPartThatCannotBePreparedLeavesEverythingAsItWas(t *testing.T) {
	for at := range 3 {
		var s script
		var parts []Part[*int]
		var want []string
		for i, name := range []string{"a", "b", "c"} {
			fails := ""
			if i == at {
				fails = "prepare"
			}
			parts = append(parts, s.part(name, fails))
			if i <= at {
				want = append(want, "prepare "+name)
			}
		}
		for i := at - 1; i >= 0; i-- {
			want = append(want, "cancel "+parts[i].Name)
		}
		l := s.started(t, parts...)
		_, _, err := l.Reload(t.Context(), nil, nil, func() { t.Error("the next configuration is served") })
		if !errors.Is(err, errs.Invalid) || !strings.HasPrefix(errs.Messages(err), parts[at].Name) {
			t.Errorf("%v", err)
		}
		s.want(t, want...)
	}
}

func TestPartsStopInTheReverseOrder(t *testing.T) {
	var s script
	l := s.started(t, s.part("a", ""), s.part("b", "stop"), s.part("c", ""))
	if got := l.Check(); !slices.Equal(got, []string{"a is slow", "b is slow", "c is slow"}) {
		t.Error(got)
	}
	if got := l.Check("c", "none", "b"); !slices.Equal(got, []string{"c is slow", "b is slow", "a is slow"}) {
		t.Error(got)
	}
	if err := l.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "stopping b") {
		t.Error(err)
	}
	s.want(t, "stop c", "stop b", "stop a")
	if err := l.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAPartThatHangsIsAborted(t *testing.T) {
	var log kit.Tail
	l := NewList[*int](slog.New(slog.NewTextHandler(&log, nil)))
	var b Background
	held := make(chan struct{})
	start := func(context.Context, *int) error {
		b.Go(func(context.Context) { <-held })
		return nil
	}
	if err := l.Start(t.Context(), Part[*int]{Name: "stubborn", Start: start, Stop: b.Stop}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Stop(ctx); err != nil || !strings.Contains(log.String(), "part=stubborn") {
		t.Error(err, log.String())
	}
	close(held)
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBackgroundEndsWithItsStop(t *testing.T) {
	var b Background
	calls := make(chan int)
	n := 0
	b.Every(time.Microsecond, func(ctx context.Context) bool {
		n++
		select {
		case calls <- n:
		case <-ctx.Done():
		}
		return true
	})
	<-calls
	<-calls
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-calls:
		t.Error("it is called after the stop")
	default:
	}
	ended := make(chan struct{})
	var once Background
	once.Every(time.Microsecond, func(context.Context) bool { close(ended); return false })
	<-ended
	if err := once.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The first call takes longer than the interval: the next one waits for it.
func TestCallsFollowEachOther(t *testing.T) {
	var b Background
	began, slow := make(chan struct{}, 3), make(chan struct{})
	var now, most atomic.Int32
	b.NowAndEvery(time.Microsecond, func(ctx context.Context) bool {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		select {
		case began <- struct{}{}:
		case <-ctx.Done():
		}
		<-slow
		return true
	})
	<-began
	second := make(chan struct{})
	b.Every(10*time.Millisecond, func(context.Context) bool { close(second); return false }) // after many intervals
	<-second
	if len(began) > 0 {
		t.Error("a call begins beside another one")
	}
	close(slow)
	<-began
	<-began
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 1 {
		t.Errorf("%d calls at once", most.Load())
	}
}
