package part

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

var errNo = errors.New("no")

// A part that is beside another one starts while that one does, and both stop in the reverse order.
func TestAPartStartsBesideTheOneBefore(t *testing.T) {
	var s script
	met := make(chan struct{})
	meet := func(context.Context, *int) error {
		select {
		case met <- struct{}{}:
		case <-met:
		}
		return nil
	}
	first, second, third := s.part("a", ""), s.part("b", ""), s.part("c", "")
	first.Start, second.Start, second.Beside = meet, meet, true
	l := NewList[*int](slog.New(slog.DiscardHandler))
	if err := l.StartAll(t.Context(), []Part[*int]{first, second, third}, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want(t, "start c", "stop c", "stop b", "stop a")
}

// What fails beside a part, as on a full disk where that one waits for space, starts again after it.
func TestAPartThatFailsBesideAnotherStartsAgain(t *testing.T) {
	var s script
	failed := make(chan struct{})
	first, second, third := s.part("a", ""), s.part("b", ""), s.part("c", "")
	first.Start = func(context.Context, *int) error {
		<-failed
		return nil
	}
	tries := 0
	second.Beside, second.Start = true, func(context.Context, *int) error {
		if tries++; tries == 1 {
			close(failed)
			return errNo
		}
		return nil
	}
	l := NewList[*int](slog.New(slog.DiscardHandler))
	if err := l.StartAll(t.Context(), []Part[*int]{first, second, third}, nil); err != nil || tries != 2 {
		t.Errorf("%d tries: %v", tries, err)
	}
	s.want(t, "start c")

	second.Start = func(context.Context, *int) error { return errNo }
	l = NewList[*int](slog.New(slog.DiscardHandler))
	if err := l.StartAll(t.Context(), []Part[*int]{s.part("a", ""), second, third}, nil); !errors.Is(err, errNo) {
		t.Errorf("twice: %v", err)
	}
}

// If the part before fails, the one beside it ends, and both are stopped.
func TestAPartBesideOneThatFailsEnds(t *testing.T) {
	var s script
	first, second := s.part("a", ""), s.part("b", "")
	first.Start = func(context.Context, *int) error { return errNo }
	second.Beside, second.Start = true, func(ctx context.Context, _ *int) error {
		<-ctx.Done()
		return ctx.Err()
	}
	l := NewList[*int](slog.New(slog.DiscardHandler))
	if err := l.StartAll(t.Context(), []Part[*int]{first, second, s.part("c", "")}, nil); !errors.Is(err, errNo) {
		t.Error(err)
	}
	if err := l.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want(t, "stop b", "stop a")
}
