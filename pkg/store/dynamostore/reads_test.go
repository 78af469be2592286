package dynamostore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"belfry/test/backing"
)

// Many read the same store at once: objects of their own and the same one, deleted ones, and some that do not exist.
func TestReadsOfManyCallersAreMadeTogether(t *testing.T) {
	t.Parallel()
	g := newProxy(t, backing.Dynoxide(t).URL)
	s := openStore(t, openBackend(t, options(g.url)), byColor)
	const objects, callers = 12, 240
	for i := range objects {
		s.put(write(fmt.Sprint("o", i), 0, 10, body(fmt.Sprint("c", i))))
		if i%3 == 0 {
			s.put(write(fmt.Sprint("o", i), 10, 20, nil))
		}
	}
	for together := false; !together; {
		g.set(nil)
		var reads sync.WaitGroup
		for i := range callers {
			reads.Go(func() { s.wantRead(i%(objects+4), objects) })
		}
		reads.Wait()
		together = slices.Contains(g.seen(), "BatchGetItem")
		if t.Context().Err() != nil || t.Failed() {
			t.FailNow()
		}
	}
}

// The requests of the first reads get no reply for as long as the test lasts.
func TestReadsDoNotWaitForThoseThatGetNoReply(t *testing.T) {
	t.Parallel()
	g := newProxy(t, backing.Dynoxide(t).URL)
	s := openStore(t, openBackend(t, options(g.url)), byColor)
	s.put(write("there", 0, 10, body("red")))
	g.set(everyTime("GetItem", fault{hang: true}))
	ctx, cancel := context.WithCancel(t.Context())
	var lost sync.WaitGroup
	defer lost.Wait()
	defer cancel()
	for i := range 64 {
		lost.Go(func() { _, _, _ = s.Get(ctx, fmt.Sprint("lost", i)) })
	}
	for len(g.seen()) < 4 {
		if t.Context().Err() != nil {
			return
		}
	}
	var reads sync.WaitGroup
	for range 2 { // that of one alone would be a GetItem
		reads.Go(func() {
			if r, found, err := s.Get(t.Context(), "there"); err != nil || !found || r.Revision != 10 {
				t.Errorf("found %t, at %d, error %v", found, r.Revision, err)
			}
		})
	}
	reads.Wait()
}

// wantRead reads an object, of which every third is deleted.
func (s testStore) wantRead(i, objects int) {
	r, found, err := s.Get(s.t.Context(), fmt.Sprint("o", i))
	deleted := i%3 == 0
	switch {
	case err != nil || found != (i < objects) || found && r.Deleted != deleted:
		s.t.Errorf("object %d: found %t, deleted %t, error %v", i, found, r.Deleted, err)
	case found && !deleted && string(r.Body) != string(body(fmt.Sprint("c", i))):
		s.t.Errorf("object %d is read as %s", i, r.Body)
	}
}
