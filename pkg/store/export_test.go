package store

import (
	"testing"
	"time"
)

// SetMaxAttempts changes how often a write is attempted, and returns what restores it.
func SetMaxAttempts(n int) (restore func()) {
	before := maxAttempts
	maxAttempts = n
	return func() { maxAttempts = before }
}

// SetMaxListKeys changes how many keys a list compares, and returns what restores it.
func SetMaxListKeys(n int) (restore func()) {
	before := maxListKeys
	maxListKeys = n
	return func() { maxListKeys = before }
}

// SetMaxUnindexed sets how many objects a list without an index reads at most, until the test ends.
func SetMaxUnindexed(t testing.TB, n int) {
	before := maxUnindexed
	maxUnindexed = n
	t.Cleanup(func() { maxUnindexed = before })
}

// SetMaxUnindexedKeys is SetMaxUnindexed for the keys of the objects.
func SetMaxUnindexedKeys(t testing.TB, n int) {
	before := maxUnindexedKeys
	maxUnindexedKeys = n
	t.Cleanup(func() { maxUnindexedKeys = before })
}

// AskIndexesAlways has stores ask their backends each time which indexes are complete, until the test ends.
func AskIndexesAlways(t testing.TB) {
	complete, building := completeFor, buildingFor
	completeFor, buildingFor = -time.Hour, -time.Hour
	t.Cleanup(func() { completeFor, buildingFor = complete, building })
}
