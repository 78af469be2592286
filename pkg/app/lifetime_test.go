package app

import (
	"errors"
	"testing"
)

// However many parts fail at once, none of them blocks.
func TestAFailureIsReportedWithoutBlocking(t *testing.T) {
	l := newLifetime()
	first := errors.New("first")
	l.fail(first)
	l.fail(errors.New("second"))
	l.fail(errors.New("third"))
	if err := <-l.failed; !errors.Is(err, first) {
		t.Error(err)
	}
}
