package route

import (
	"fmt"
	"testing"
)

// alone is a group of one process with members that do not exist.
func alone(id string, others ...string) *Group {
	g := &Group{id: id, hash: hashOf(id)}
	var all []candidate
	for _, other := range others {
		all = append(all, candidate{other, hashOf(other)})
	}
	g.others.Store(&all)
	return g
}

// ownerOf is the owner of a target, as a process has it.
func (g *Group) ownerOf(target string) string {
	if owner := g.owner(&Round{Target: target}); owner != "" {
		return owner
	}
	return g.id
}

// Targets are spread evenly. One that leaves leaves its targets to the others, and no others move.
func TestOwnersAreSpread(t *testing.T) {
	const targets = 30_000
	a, b := alone("a", "b", "c"), alone("b", "c", "a")
	without := alone("a", "b")
	has := map[string]int{}
	for i := range targets {
		target := fmt.Sprintf("p-%08d", i)
		owner := a.ownerOf(target)
		if other := b.ownerOf(target); other != owner {
			t.Fatalf("%s is %s's and %s's", target, owner, other)
		}
		if rest := without.ownerOf(target); owner != "c" && rest != owner {
			t.Fatalf("without c, %s moves from %s to %s", target, owner, rest)
		}
		has[owner]++
	}
	for id, n := range has {
		if n < targets/3*9/10 || n > targets/3*11/10 {
			t.Errorf("%s has %d of %d targets", id, n, targets)
		}
	}
}
