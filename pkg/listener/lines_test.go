package listener_test

import (
	"strings"

	"belfry/test/kit"
)

// lines is a log that can be read while it is written.
type lines struct{ kit.Tail }

func (l *lines) count(s string) int { return strings.Count(l.String(), s) }
