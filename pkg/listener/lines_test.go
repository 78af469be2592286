package listener_test

import (
	"strings"

	"belfry/test/tail"
)

// lines is a log that can be read while it is written.
type lines struct{ tail.Tail }

func (l *lines) count(s string) int { return strings.Count(l.String(), s) }
