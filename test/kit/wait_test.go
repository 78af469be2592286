package kit

import (
	"errors"
	"strings"
	"testing"
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
