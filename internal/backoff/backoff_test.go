package backoff_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"belfry/internal/backoff"
)

func TestDelaysDoubleUpToTheMaximum(t *testing.T) {
	const minimum, maximum = 100 * time.Millisecond, time.Second
	for attempt, whole := range map[int]time.Duration{
		-1: minimum, 0: minimum, 1: minimum, 2: 2 * minimum, 3: 4 * minimum, 4: 8 * minimum,
		5: maximum, 37: maximum, 63: maximum, 64: maximum, 65: maximum, math.MaxInt: maximum,
	} {
		for range 100 {
			if d := backoff.Delay(attempt, minimum, maximum); d < whole/2 || d > whole {
				t.Fatalf("attempt %d: %s, want between %s and %s", attempt, d, whole/2, whole)
			}
		}
	}
	if d := backoff.Delay(3, 0, 0); d != 0 {
		t.Errorf("without a maximum the delay is %s, want 0", d)
	}
}

func TestDelaysHaveJitter(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[backoff.Delay(1, time.Second, time.Second)] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d distinct delays of 100", len(seen))
	}
}

func TestResetStartsOver(t *testing.T) {
	b := backoff.New(time.Second, time.Hour)
	for range 5 {
		b.Next()
	}
	if d := b.Next(); d < 16*time.Second || b.Failed() != 6 {
		t.Errorf("delay %s after %d attempts", d, b.Failed())
	}
	b.Reset()
	if d := b.Next(); d > time.Second || b.Failed() != 1 {
		t.Errorf("delay %s after a reset, attempt %d", d, b.Failed())
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := backoff.New(time.Nanosecond, time.Nanosecond).Wait(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	if err := backoff.New(time.Hour, time.Hour).Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait returned %v", err)
	}
	if err := backoff.Sleep(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep returned %v", err)
	}
}
