package rounds

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/store"
)

func TestATargetIsContendedForAMinuteAfterItsLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c contended
		m := &store.Mapping{}
		a, b := Key{Mapping: m, Target: "a"}, Key{Mapping: m, Target: "b"}
		c.add(a)
		for range 3 {
			time.Sleep(contendedFor - time.Second)
			if !c.has(a) || c.has(b) {
				t.Fatalf("contended: %v, and %v without a conflict", c.has(a), c.has(b))
			}
		}
		time.Sleep(contendedFor + time.Second)
		if c.has(a) || len(c.until) != 0 {
			t.Error("a target without events is still contended")
		}
	})
}

func TestAllTargetsAreContendedAfterConflictsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c contended
		m, other := &store.Mapping{}, &store.Mapping{}
		conflicts := func(n, rounds int) bool { // with so many other rounds for each
			for i := range n {
				k := Key{Mapping: m, Target: fmt.Sprint(i)}
				c.add(k)
				for range rounds {
					c.rounded(k)
				}
			}
			return c.has(Key{Mapping: m, Target: "x"})
		}
		if conflicts(100, conflictWeight) {
			t.Error("with few conflicts all targets are contended")
		}
		if conflicts(3, 0) || !conflicts(1, 0) {
			t.Error("four conflicts in a row are not what it takes")
		}
		if c.has(Key{Mapping: other, Target: "x"}) {
			t.Error("the targets of another mapping are contended")
		}
		time.Sleep(allContendedFor + time.Second)
		if c.has(Key{Mapping: m, Target: "x"}) {
			t.Error("all targets are contended without further conflicts")
		}
	})
}

func TestContendedTargetsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c contended
		m := &store.Mapping{}
		for i := range maxContended + 10 {
			c.add(Key{Mapping: m, Target: fmt.Sprint(i)})
		}
		if len(c.until) != maxContended {
			t.Errorf("%d are remembered", len(c.until))
		}
		time.Sleep(contendedFor + time.Second)
		if c.add(Key{Mapping: m, Target: "x"}); len(c.until) != 1 {
			t.Errorf("%d are remembered after the others have expired", len(c.until))
		}
	})
}
