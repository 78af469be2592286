package api

import (
	"slices"
	"testing"

	"belfry/pkg/op"
)

// AddDomain adds operations to all sets, until a test ends.
func AddDomain(t *testing.T, add func(*op.Set)) {
	before := domains
	domains = slices.Concat(before, []func(*op.Set, handlers){func(set *op.Set, _ handlers) { add(set) }})
	t.Cleanup(func() { domains = before })
}
