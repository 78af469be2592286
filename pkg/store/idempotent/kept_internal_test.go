package idempotent

import (
	"errors"
	"testing"
	"time"

	"belfry/pkg/errs"
)

func TestTheRepliesThatAreKeptAreBoundedByClient(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	k := NewKept(1000, func() time.Time { return now })
	wait := func(client string) time.Duration {
		t.Helper()
		err := k.check(client)
		var limited *errs.Error
		if err == nil {
			return 0
		}
		if !errors.As(err, &limited) || limited.Kind != errs.Limited {
			t.Fatal(err)
		}
		return limited.RetryAfter
	}
	k.add("ada", 600)
	if wait("ada") != 0 {
		t.Error("refused before the bound")
	}
	now = now.Add(2 * time.Hour)
	k.add("ada", 600)
	if wait("bob") != 0 || wait("") != 0 {
		t.Error("others are refused")
	}
	// The first reply counts until it is not kept any more.
	until := wait("ada")
	if until < KeyRetention-2*time.Hour || until > KeyRetention-time.Hour {
		t.Errorf("the next is to come in %s", until)
	}
	now = now.Add(until - time.Second)
	if wait("ada") == 0 {
		t.Error("what is kept does not count")
	}
	now = now.Add(time.Second)
	if wait("ada") != 0 {
		t.Error("what is kept no more counts")
	}
	k.add("ada", 600)
	if wait("ada") == 0 {
		t.Error("the second reply does not count")
	}
	k.SetMax(5000)
	if wait("ada") != 0 {
		t.Error("the former bound counts")
	}
	k.SetMax(0)
	k.add("ada", 1<<30)
	if wait("ada") != 0 {
		t.Error("there is a bound")
	}
	k.SetMax(1)
	now = now.Add(1000 * KeyRetention)
	if wait("ada") != 0 {
		t.Error("what was kept long ago counts")
	}
}
