package ratelimit_test

import (
	"testing"
	"time"

	"belfry/internal/ratelimit"
)

func TestAClientHasTenSecondsWorthAndThenItsRate(t *testing.T) {
	now := time.Now()
	c := ratelimit.NewClients(2)
	b := c.Bucket("ann", now)
	for i := range 20 {
		if wait := b.Take(now); wait != 0 {
			t.Fatalf("request %d waits %s", i, wait)
		}
	}
	if wait := b.Take(now); wait.Round(time.Microsecond) != 500*time.Millisecond || b.Left(now) != 0 {
		t.Errorf("waits %s with %d left", wait, b.Left(now))
	}
	if c.Bucket("bob", now).Take(now) != 0 {
		t.Error("another client is limited as well")
	}
	now = now.Add(500 * time.Millisecond)
	if c.Bucket("ann", now).Take(now) != 0 || c.Bucket("ann", now).Take(now) == 0 {
		t.Error("the rate is not that of the limit")
	}
	if now = now.Add(time.Hour); b.Left(now) != 20 {
		t.Errorf("%d saved in an hour", b.Left(now))
	}
}

func TestWhatIsChargedIsOwed(t *testing.T) {
	now := time.Now()
	b := ratelimit.NewClients(100).Bucket("ann", now)
	if wait := b.Charge(now, 900); wait != 0 || b.Debt(now) != 0 {
		t.Errorf("charging what is there waits %s", wait)
	}
	if wait := b.Charge(now, 300); wait != 2*time.Second || b.Debt(now) < 2*time.Second || b.Left(now) != 0 {
		t.Errorf("waits %s, then %s", wait, b.Debt(now))
	}
	if now = now.Add(2100 * time.Millisecond); b.Debt(now) != 0 {
		t.Errorf("%s are owed after the debt is paid", b.Debt(now))
	}
	if wait := b.Charge(now, 1_000_000); wait > 10*time.Second {
		t.Errorf("one charge waits %s", wait)
	}
}

func BenchmarkTake(b *testing.B) {
	c := ratelimit.NewClients(1 << 40)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			now := time.Now()
			c.Bucket("192.0.2.1", now).Take(now)
		}
	})
}
