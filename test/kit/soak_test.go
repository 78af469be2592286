package kit

import (
	"testing"
	"time"
)

func TestSoakRunsItsRoundsAtFixedSeeds(t *testing.T) {
	s := Soak(t, 3)
	var seeds []uint64
	for s.More() {
		seeds = append(seeds, s.Seed())
		if s.Rand().Uint64() != s.Rand().Uint64() {
			t.Error("two sources of one round differ")
		}
	}
	if *soakDuration > 0 {
		return
	}
	if len(seeds) != 3 || seeds[1] != seeds[0]+1 || seeds[2] != seeds[0]+2 {
		t.Errorf("the seeds are %v", seeds)
	}
}

func TestSoakRunWithADeadlineHasOneRoundAtLeast(t *testing.T) {
	s := &SoakRun{seed: 7, rounds: 3, deadline: time.Now().Add(-time.Second)}
	if !s.More() || s.More() || s.Seed() != 7 || s.Round() != 1 {
		t.Errorf("round %d, seed %d", s.Round(), s.Seed())
	}
}
