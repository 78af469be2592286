package bus_test

import (
	"strings"

	"belfry/test/kit"
)

// logged is a log that can be read while it is written.
type logged struct{ kit.Tail }

func (l *logged) count(s string) int { return strings.Count(l.String(), s) }
