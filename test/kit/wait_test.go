package kit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwaitReturnsTheLastError(t *testing.T) {
	late := errors.New("late")
	checks := 0
	err := Await(20*time.Millisecond, func() error {
		checks++
		return late
	})
	if !errors.Is(err, late) || !strings.Contains(err.Error(), ": late") || checks < 2 {
		t.Errorf("%v after %d checks", err, checks)
	}
}

func TestAwaitEndsWhenTheConditionIsTrue(t *testing.T) {
	checks := 0
	if err := Await(Limit, func() error {
		if checks++; checks < 3 {
			return errNotYet
		}
		return nil
	}); err != nil || checks != 3 {
		t.Errorf("%v after %d checks", err, checks)
	}
}

// A check may take longer than the patience: the next one may succeed.
func TestAwaitChecksTwice(t *testing.T) {
	checks := 0
	if err := Await(0, func() error {
		if checks++; checks < 2 {
			return errNotYet
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheShareOfAProcessCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := 1.0
		w := newWait(func() float64 { return now })
		for _, step := range []struct {
			share float64
			want  time.Duration
		}{
			{1, time.Minute},
			{0.05, time.Minute + 3*time.Second}, // at the end
			{0.05, time.Minute + 6*time.Second}, // all the time
			{1, time.Minute + 9*time.Second},    // at the beginning
			{1, 2*time.Minute + 9*time.Second},
		} {
			now = step.share
			time.Sleep(time.Minute)
			if got := w.passed(); got.Round(time.Second) != step.want {
				t.Errorf("%s counted, want %s", got, step.want)
			}
		}
	})
}

func TestPatienceEnds(t *testing.T) {
	ctx, cancel := Patience(t.Context(), 10*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if ctx.Err() == nil || t.Context().Err() != nil {
		t.Error(ctx.Err())
	}
	other, end := Patience(context.Background(), time.Minute)
	end()
	<-other.Done()
}
