package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"belfry/internal/ratelimit"
)

func TestTokensAreRefilledWithTime(t *testing.T) {
	now := time.Now()
	l := ratelimit.New(6, func() time.Time { return now })
	take := func(want time.Duration) {
		t.Helper()
		if wait := l.Take("192.0.2.1"); wait.Round(time.Microsecond) != want {
			t.Errorf("wait %s, want %s", wait, want)
		}
	}
	for range 6 {
		take(0)
	}
	take(10 * time.Second)
	now = now.Add(10*time.Second - time.Millisecond)
	take(time.Millisecond)
	now = now.Add(time.Millisecond)
	take(0)
	take(10 * time.Second)
	now = now.Add(time.Hour) // saves no more than a minute's
	for range 6 {
		take(0)
	}
	take(10 * time.Second)
}

func TestAReturnedTokenCanBeTakenAgain(t *testing.T) {
	now := time.Now()
	l := ratelimit.New(1, func() time.Time { return now })
	for range 10 {
		if l.Take("192.0.2.1") != 0 {
			t.Fatal("limited")
		}
		l.Return("192.0.2.1")
	}
	l.Return("192.0.2.1") // saves no more than a minute's
	if l.Take("192.0.2.1") != 0 || l.Take("192.0.2.1") != time.Minute {
		t.Error("returned tokens exceed the limit")
	}
}

func TestZeroLimitsNothing(t *testing.T) {
	l := ratelimit.New(0, time.Now)
	for range 1000 {
		if l.Take("192.0.2.1") != 0 {
			t.Fatal("limited")
		}
		l.Return("192.0.2.1")
	}
}

func TestKeyOfAnAddress(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64",
		"2001:db8:0:0:ffff::": "2001:db8::/64",
		"2001:db8:0:1::1":     "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64", "": "", "no address": "no address",
	} {
		if key := ratelimit.Key(address); key != want {
			t.Errorf("%q: %q, want %q", address, key, want)
		}
	}
}

// A client with ever new addresses must not fill the memory, nor make each
// further address read the whole table.
func TestAFullTableDropsAnEighth(t *testing.T) {
	for name, idle := range map[string]bool{"idle": true, "busy": false} {
		table := ratelimit.NewTable(func(*int) bool { return idle })
		for i := range ratelimit.MaxKeys {
			table.GetOrCreate(fmt.Sprint(i))
		}
		if table.Len() != ratelimit.MaxKeys {
			t.Fatalf("%s: %d keys", name, table.Len())
		}
		table.GetOrCreate("another")
		if n := table.Len(); n > ratelimit.MaxKeys-ratelimit.MaxKeys/8+1 || table.Get("another") == nil {
			t.Errorf("%s: %d keys", name, n)
		}
	}
}
