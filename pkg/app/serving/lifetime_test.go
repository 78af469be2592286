package serving

import (
	"errors"
	"testing"
)

// However many parts fail at once, none of them blocks.
func TestAFailureIsReportedWithoutBlocking(t *testing.T) {
	l := NewLifetime()
	first := errors.New("first")
	l.Fail(first)
	l.Fail(errors.New("second"))
	l.Fail(errors.New("third"))
	if err := <-l.Failed; !errors.Is(err, first) {
		t.Error(err)
	}
}
