package kit

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	soakDuration = flag.Duration("soak.duration", 0, "how long each soak test runs; 0: a few rounds at a fixed seed")
	soakRounds   = flag.Uint64("soak.rounds", 0, "how many rounds each soak test has without -soak.duration; 0: a few")
	soakSeed     = flag.Uint64("soak.seed", 0,
		"the seed of a soak test's first round; 0: a fixed one, or with -soak.duration a random one")
)

// fixedSeed is that of the slice that every run of the tests includes.
const fixedSeed = 1

// SoakRun is one run of a soak test: a test of random operations that runs for a few rounds by
// default and until a deadline in `make soak`. It is not safe for concurrent use.
type SoakRun struct {
	seed, round uint64
	rounds      uint64 // without a deadline
	deadline    time.Time
}

// Soak starts a run of a soak test, whose name begins with TestSoak. Without -soak.duration the run
// has so many rounds and the same seeds every time. When the test fails it logs how to repeat it.
func Soak(t testing.TB, rounds int) *SoakRun {
	t.Helper()
	s := &SoakRun{seed: *soakSeed, rounds: uint64(max(rounds, 1))}
	if *soakRounds > 0 {
		s.rounds = *soakRounds
	}
	if *soakDuration > 0 {
		s.deadline = time.Now().Add(*soakDuration)
	}
	if s.seed == 0 {
		s.seed = fixedSeed
		if *soakDuration > 0 {
			s.seed = rand.Uint64()
		}
	}
	if *soakDuration > 0 {
		t.Logf("%s: -soak.seed=%d", t.Name(), s.seed)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("failed in round %d; repeat the run with -run '^%s$' -soak.seed=%d, or start with that round by "+
				"-soak.seed=%d",
				s.round, t.Name(), s.seed, s.Seed())
		}
	})
	return s
}

// LongSoak reports whether soak tests run until a deadline.
func LongSoak() bool { return *soakDuration > 0 }

// SoakRequested reports whether somebody runs soak tests for a duration or a number of rounds. A soak test that needs
// what the tests of every commit must not need, such as the history of the project, does nothing otherwise.
func SoakRequested() bool { return LongSoak() || *soakRounds > 0 }

// More starts the next round and reports whether there is one. The first always is.
func (s *SoakRun) More() bool {
	more := s.round < s.rounds
	if !s.deadline.IsZero() {
		more = s.round == 0 || time.Now().Before(s.deadline)
	}
	if more {
		s.round++
	}
	return more
}

// Round is the number of the round, from 1.
func (s *SoakRun) Round() int { return int(s.round) }

// Long reports whether the run has a deadline, so that a test can take larger inputs.
func (s *SoakRun) Long() bool { return !s.deadline.IsZero() }

// Seed is the seed of the round: a run that starts with this seed starts with this round.
func (s *SoakRun) Seed() uint64 { return s.seed + max(s.round, 1) - 1 }

// Rand returns a random source for the round. It returns the same numbers at each call.
func (s *SoakRun) Rand() *rand.Rand { return rand.New(rand.NewPCG(s.Seed(), 0)) }
