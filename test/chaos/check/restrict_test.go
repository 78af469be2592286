package check

import (
	"testing"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

var (
	shelf = obj(history.Shelves, 0)
	other = obj(history.Shelves, 1)
	box   = obj(history.Boxes, 0)
	lid   = obj(history.Lids, 0)
)

func on(o history.Object, title string) map[string]any {
	return map[string]any{"title": title, "shelf": o.UUID}
}

// shelved is a good history of objects that can't be deleted while others name them: with a deletion that is refused,
// which leaves no event but another revision, and with writes that were made and taken back.
func shelved(t *testing.T) *story {
	t.Helper()
	s := good(t)
	s.do(history.Create, shelf, map[string]any{"title": "shelf"})
	s.do(history.Create, other, map[string]any{"title": "other"})
	s.do(history.Create, box, on(shelf, "box"))
	s.do(history.Create, lid, on(shelf, "lid"))
	s.refuse(history.Delete, shelf, 409, "").Problem = "conflict: Shelves can't be deleted, because objects name it"
	s.mark(shelf)
	s.get(shelf)
	s.do(history.Put, shelf, map[string]any{"title": "again"})
	s.mark(shelf)
	s.settle()

	// A box moves to a shelf that is deleted meanwhile, and a box is created there. Both are taken back.
	moved := s.refuse(history.Put, box, 400, "moved")
	created := s.refuse(history.Create, obj(history.Boxes, 1), 400, "created")
	s.happen(box, event.StoreUpdated, event.OriginHTTP, moved.Request, on(other, "moved"))
	s.get(box)
	s.happen(created.Object, event.StoreSaved, event.OriginHTTP, created.Request, on(other, "created"))
	s.get(created.Object)
	s.do(history.Delete, other, nil)
	s.happen(box, event.StoreUpdated, event.OriginHTTP, moved.Request, on(shelf, "box"))
	s.get(box)
	s.happen(created.Object, event.StoreDeleted, event.OriginHTTP, created.Request, nil)
	s.get(created.Object)
	for _, op := range []*history.Op{moved, created} {
		op.Fields["shelf"], op.Return = toJSON(other.UUID), s.now()
	}
	s.get(shelf)
	return s
}

// mark changes the revision of an object alone.
func (s *story) mark(o history.Object) {
	s.revision += 1000
	s.Final[o] = history.State{Revision: s.revision, Body: s.Final[o].Body}
}

func TestRestrictedDeletionsHaveNoViolation(t *testing.T) {
	s := shelved(t)
	expect(t, s)
	if r := Segment(s.Segment); r.Restricted != 1 || r.Named != 2 || r.Undone != 2 {
		t.Errorf("%d deletions were refused, %d writes, %d taken back; want 1, 2, 2", r.Restricted, r.Named, r.Undone)
	}
	s.lose()
	expect(t, s)
}

func TestADeletionOfANamedObjectIsFound(t *testing.T) {
	s := shelved(t)
	s.do(history.Delete, shelf, nil)
	s.settle()
	expect(t, s, Dangling, WronglyDeleted)

	// It is found, too, when the objects no longer name it in the end.
	s = shelved(t)
	s.do(history.Delete, shelf, nil)
	s.do(history.Create, other, map[string]any{"title": "third"})
	s.do(history.Put, box, on(other, "box moved"))
	s.do(history.Put, lid, on(other, "lid moved"))
	s.settle()
	expect(t, s, WronglyDeleted)

	// Objects that have been moved, or deleted, before name it no longer.
	s = shelved(t)
	s.do(history.Create, other, map[string]any{"title": "third"})
	s.do(history.Put, box, on(other, "box moved"))
	s.do(history.Delete, lid, nil)
	s.do(history.Delete, shelf, nil)
	s.settle()
	expect(t, s)
}

// While the outcome of the write is not known, the deletion may have come first.
func TestAWriteThatIsNotAcknowledgedPreventsNoDeletion(t *testing.T) {
	s := shelved(t)
	third := obj(history.Shelves, 2)
	s.do(history.Create, third, map[string]any{"title": "third"})
	op := s.do(history.Put, box, on(third, "unknown"))
	deletion := s.do(history.Delete, third, nil)
	op.Outcome, op.Return, op.Revision, op.Body = history.Unknown, history.Never, 0, nil
	s.settle()
	expect(t, s)
	op.Outcome, op.Return = history.Done, deletion.Return+1
	expect(t, s, Dangling)
}

func TestAWriteThatIsRefusedAndNotTakenBackIsFound(t *testing.T) {
	s := shelved(t)
	op := s.refuse(history.Put, box, 400, "stays")
	op.Fields["shelf"] = toJSON(other.UUID)
	s.happen(box, event.StoreUpdated, event.OriginHTTP, op.Request, on(other, "stays"))
	s.settle()
	expect(t, s, RefusedEvent)
	op.Bus = true // which may have been repeated after a crash
	expect(t, s)
	op.Bus = false
	s.do(history.Put, box, map[string]any{"title": "between"}) // before it could be taken back
	s.settle()
	expect(t, s)
}

func TestARefusalWithoutAReasonIsFound(t *testing.T) {
	s := shelved(t)
	empty := obj(history.Shelves, 2)
	s.do(history.Create, empty, map[string]any{"title": "empty"})
	s.refuse(history.Put, lid, 400, "x").Fields["shelf"] = toJSON(empty.UUID)
	expect(t, s, WrongReply)
	s.Marked = map[history.Object]bool{empty: true}
	expect(t, s)
	s.refuse(history.Delete, empty, 409, "").Problem = "conflict: Shelves can't be deleted, because objects name it"
	expect(t, s) // the refused write may have been made
	unnamed := obj(history.Shelves, 3)
	s.do(history.Create, unnamed, map[string]any{"title": "unnamed"})
	s.refuse(history.Delete, unnamed, 409, "").Problem = "conflict: Shelves can't be deleted, because objects name it"
	expect(t, s, WrongReply)
}

// A deletion at a revision is made although reads show the revision of its own mark, and not if somebody has written.
func TestAConditionalDeletionMarksItsObject(t *testing.T) {
	for between, want := range map[string][]Kind{"": nil, "another write": {NotLinearizable}} {
		s := shelved(t)
		third := obj(history.Shelves, 2)
		s.do(history.Create, third, map[string]any{"title": "third"})
		at := s.Final[third].Revision
		s.mark(third)
		s.get(third)
		if between != "" {
			s.do(history.Put, third, map[string]any{"title": between})
		}
		s.do(history.Delete, third, nil).IfMatch = at
		expect(t, s, want...)
	}
}

// Marks change nothing but the revision.
func TestAVersionOfAMarkThatDiffersIsFound(t *testing.T) {
	s := shelved(t)
	op := s.get(shelf)
	op.Body = []byte(`{"uuid":"` + shelf.UUID + `","title":"shelf"}`)
	expect(t, s, DirtyRead, NotLinearizable)
	s = shelved(t)
	s.change(shelf, "again", "shelf")
	expect(t, s, EventDiffers, WrongCopy)
}
