package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// claimTests hold what unique values build on: docs/unique.md. A claim is a record of a store beside that of the
// objects.
func claimTests() []test {
	return []test{
		{"of several claims of one value one is made", oneClaimIsMade},
		{"a fence stops a write with a lower revision and leaves everything else", fenceOfRecord},
		{"a fence stops the creation of what does not exist", fenceOfNothing},
	}
}

// claimUUID is that of a claim: a hash.
var claimUUID = strings.Repeat("0123456789abcdef", 4)

// claimFor is the write of a claim, which has no event.
func (s *testStore) claimFor(owner string, cond, revision uint64) driver.Write {
	w := driver.Write{UUID: claimUUID, IfRevision: cond, Revision: revision}
	if owner != "" {
		w.Body = text(owner).encode()
	}
	return w
}

func oneClaimIsMade(f *fixture) {
	objects, claims := f.open("Books", byColor), f.open("Books.claims")
	objects.put(claimUUID, 0, 1, keyed("color", "red"))
	held := uint64(0)
	for round := range uint64(3) {
		var writers sync.WaitGroup
		made := make([]error, 8)
		for i := range made {
			writers.Go(func() {
				made[i] = claims.Put(f.ctx, claims.claimFor(fmt.Sprint("w", i), held, 10*round+uint64(i)+2))
			})
		}
		writers.Wait()
		winner := -1
		for i, err := range made {
			switch {
			case err == nil && winner < 0:
				winner = i
			case !errors.Is(err, errs.Mismatch):
				f.Fatalf("round %d: %v", round, made)
			}
		}
		if winner < 0 {
			f.Fatalf("round %d: nobody has made the claim: %v", round, made)
		}
		held = 10*round + uint64(winner) + 2
		claims.wantRecord(claimUUID, held, text(fmt.Sprint("w", winner)))
	}
	// It is freed, and what was read before that takes it no more.
	f.must(claims.Put(f.ctx, claims.claimFor("", held, held+1)))
	f.wantKind(claims.Put(f.ctx, claims.claimFor("late", held, held+2)), errs.Mismatch)
	f.must(claims.Put(f.ctx, claims.claimFor("next", 0, held+2)))
	claims.wantPending()
	objects.wantRecord(claimUUID, 1, keyed("color", "red"))
	objects.wantScan(claimUUID)
}

func fenceOfRecord(f *fixture) {
	s := f.open("Books", byColor)
	s.put("a", 0, 1, keyed("color", "red"))
	fence := s.write("a", 1, 10, keyed("color", "red"))
	fence.Event = driver.Event{}
	f.must(s.Put(f.ctx, fence))
	s.wantMismatch("a", 1, 9, keyed("color", "blue")) // by a writer that has read it before
	s.wantMismatch("a", 10, 10, keyed("color", "blue"))
	s.wantRecord("a", 10, keyed("color", "red"))
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "a")
	s.wantPending("a/1")
	s.put("a", 10, 11, keyed("color", "blue"))
	s.wantPending("a/1", "a/11")
}

func fenceOfNothing(f *fixture) {
	s := f.open("Books")
	const owner = "\x010\x01" // a mark that no uuid has
	f.must(s.Put(f.ctx, driver.Write{UUID: "a", Revision: 10, Owner: owner}))
	s.wantMismatch("a", 0, 9, text("late"))
	s.wantMismatch("a", 0, 10, text("late"))
	got, found, err := s.Get(f.ctx, "a")
	f.must(err)
	if !found || !got.Deleted || got.Revision != 10 || got.Owner != owner {
		f.Fatalf("got %v, %s, owner %q", found, describe(got), got.Owner)
	}
	s.wantScan("")
	s.wantPending()
	s.put("a", 0, 11, text("one"))
	s.wantRecord("a", 11, text("one"))
}
