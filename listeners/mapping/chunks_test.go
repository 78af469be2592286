package mapping_test

import (
	"maps"
	"testing"

	"belfry/test/kit"
	"belfry/test/model"
)

// chunkScenarios are those of arrays that are read and written by their entries. What needs the whole array changes
// between both kinds of rounds: a limit, a refill, another owner.
func chunkScenarios() map[string]model.Scenario {
	all := map[string]model.Scenario{}
	for _, scenarios := range []map[string]model.Scenario{smallScenarios(), bytesScenarios(), ownerScenarios(),
		conditionScenarios()} {
		for name, s := range scenarios {
			s.Crash = true
			all[name] = s
		}
	}
	for name, s := range awaitedScenarios() {
		all[name+", which a request waits for"] = s
	}
	for name, s := range powerScenarios() {
		s.Volatile = true
		all[name] = s
	}
	for name, s := range all {
		s.MaxInFlight, s.Chunks = 2, true
		all[name] = s
	}
	return all
}

// fewChunkScenarios are those that are always explored: an entry changes beside others, a round needs the whole array,
// the target is another one, a request waits, and the power fails.
func fewChunkScenarios() []string {
	return []string{
		"two sources of one target", "an array at its limit", "entries grow beyond the limit in bytes",
		"a target is deleted and created again", "a change is reverted, which a request waits for",
		"an array at its limit, and power failures",
	}
}

// In every interleaving arrays in chunks match objects, and once a request's wait is over no target shows anything
// older than its write.
func TestArraysInChunksConverge(t *testing.T) {
	all := chunkScenarios()
	for _, name := range fewChunkScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore(t, all[name])
		})
	}
}

func TestFurtherArraysInChunksConverge(t *testing.T) {
	all := chunkScenarios()
	for _, name := range fewChunkScenarios() {
		delete(all, name)
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explore(t, s)
		})
	}
}

// A soak run explores large scenarios with crashes, too.
func TestSoakArraysInChunksWithCrashes(t *testing.T) {
	scenarios := map[string]model.Scenario{}
	if kit.Soak(t, 1).Long() {
		maps.Copy(scenarios, largeScenarios())
	} else {
		const smallest = "a target is created again while others change"
		scenarios[smallest] = largeScenarios()[smallest]
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Chunks, s.Crash = 2, true, kit.Soak(t, 1).Long()
			explore(t, s)
		})
	}
}

// Each step of the protocol is necessary with chunks, too: but for a revision that repeats, where a write in another
// incarnation changes no entry that it has not computed.
func TestModelFindsFaultsWithChunks(t *testing.T) {
	faulty := faultyScenarios()
	delete(faulty, "revisions repeat in a new incarnation")
	for name, s := range faulty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Chunks = 2, true
			findFault(t, s, workers)
		})
	}
}
