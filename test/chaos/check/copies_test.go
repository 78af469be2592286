package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

var (
	toy    = obj(history.Toys, 0)
	rating = obj(history.Ratings, 0)
)

// linked is a good history with a chain of copies, a reference that was cleared, and ratings.
func linked(t *testing.T) *story {
	t.Helper()
	s := good(t)
	gone := obj(history.Registers, 1)
	s.do(history.Create, gone, map[string]any{"title": "gone"})
	s.do(history.Create, toy, map[string]any{"title": "t", "child": child.UUID, "register": gone.UUID})
	s.do(history.Delete, gone, nil)
	s.happen(toy, event.StoreUpdated, event.OriginCascade, "", map[string]any{"register": nil})
	s.array(child, history.StoreOf(history.Toys), toy)
	for n, value := range []any{1.5, -3, "no number"} {
		o := obj(history.Ratings, n)
		s.do(history.Create, o, map[string]any{"title": fmt.Sprint("r", n), "parent": parent.UUID, "value": value})
	}
	s.do(history.Patch, obj(history.Ratings, 2), map[string]any{"value": nil})
	s.do(history.Put, parent, map[string]any{"title": "changed"})
	s.settle()
	s.array(parent, history.StoreOf(history.Children), child)
	s.array(child, history.StoreOf(history.Toys), toy)
	for _, o := range []history.Object{parent, child, toy, rating} {
		s.get(o)
	}
	return s
}

func TestWhatIsDerivedInBothDirectionsHasNoViolation(t *testing.T) {
	s := linked(t)
	expect(t, s)
	r := Segment(s.Segment)
	if r.Copies != 7 || r.Aggregates != 7 || r.Cleared != 1 {
		t.Errorf("%d copies, %d aggregates, %d cleared references, want 7, 7, 1", r.Copies, r.Aggregates, r.Cleared)
	}
	for body, property := range map[string]string{
		`"total":-1.5`: "total", `"best":1.5`: "best", `"worst":-3`: "worst", `"last":"r2"`: "last",
		`"ratings":3`: "ratings", `"smallCount":4`: "smallCount", `"smallSum":6`: "smallSum",
	} {
		if !strings.Contains(string(s.Final[parent].Body), body) {
			t.Errorf("%s is not %s: %s", property, body, s.Final[parent].Body)
		}
	}
	s.lose()
	expect(t, s)
}

// change replaces a text in an object as it is in the end.
func (s *story) change(o history.Object, text, with string) {
	s.t.Helper()
	before := string(s.Final[o].Body)
	body := strings.Replace(before, text, with, 1)
	if body == before {
		s.t.Fatalf("%q is not in %s", text, before)
	}
	s.Final[o] = history.State{Revision: s.Final[o].Revision, Body: []byte(body)}
}

func TestWrongCopiesAndAggregatesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		object     history.Object
		text, with string
		kind       Kind
	}{
		"an older value":                {rating, `"parentTitle":"changed"`, `"parentTitle":"p"`, WrongCopy},
		"none":                          {rating, `"parentTitle"`, `"other"`, WrongCopy},
		"the end of a chain":            {toy, `"grandTitle":"changed"`, `"grandTitle":"p"`, WrongCopy},
		"a copy of an object that left": {toy, `"title"`, `"registerTitle":"gone","title"`, WrongCopy},
		"a copy of an aggregate":        {child, `"parentRatings":3`, `"parentRatings":2`, WrongCopy},
		"a count":                       {parent, `"ratings":3`, `"ratings":4`, WrongAggregate},
		"a count beside an array":       {parent, `"smallCount":4`, `"smallCount":3`, WrongAggregate},
		"a sum":                         {parent, `"total":-1.5`, `"total":-1.500000001`, WrongAggregate},
		"no sum":                        {parent, `"total"`, `"other"`, WrongAggregate},
		"a least value":                 {parent, `"worst":-3`, `"worst":1.5`, WrongAggregate},
		"a greatest value":              {parent, `"last":"r2"`, `"last":"r1"`, WrongAggregate},
	} {
		s := linked(t)
		s.change(c.object, c.text, c.with)
		r := &Report{}
		copies(s.Segment, r)
		aggregates(s.Segment, r)
		// What is copied from a wrong aggregate differs from it, too.
		if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Kind == c.kind }) {
			t.Errorf("%s: found %v", name, r.Violations)
		}
	}
}

func TestACopyThatNobodyWroteIsFound(t *testing.T) {
	s := linked(t)
	op := s.get(toy)
	op.Body = []byte(strings.Replace(string(op.Body), `"grandTitle":"changed"`, `"grandTitle":"phantom"`, 1))
	expect(t, s, DirtyRead)
}

func TestDanglingReferencesAreFound(t *testing.T) {
	s := linked(t)
	other := obj(history.Registers, 2)
	s.do(history.Create, other, map[string]any{"title": "o"})
	s.do(history.Put, toy, map[string]any{"register": other.UUID})
	s.do(history.Delete, other, nil)
	s.settle()
	s.array(child, history.StoreOf(history.Toys), toy)
	expect(t, s, Dangling)
	s.happen(toy, event.StoreUpdated, event.OriginCascade, "", map[string]any{"register": nil})
	expect(t, s)

	s.revision += 10 * grace
	s.do(history.Create, obj(history.Ratings, 5), map[string]any{"title": "late", "parent": obj(history.Parents, 1).UUID})
	expect(t, s, Dangling, WrongReply) // its target had been deleted before
}

func TestAReferenceThatIsClearedWithoutAReasonIsFound(t *testing.T) {
	s := linked(t)
	s.do(history.Put, toy, map[string]any{"register": register.UUID})
	s.happen(toy, event.StoreUpdated, event.OriginCascade, "", map[string]any{"register": nil})
	s.array(child, history.StoreOf(history.Toys), toy)
	expect(t, s, WronglyCleared)
}

func TestARefusalOfAReferenceToAnObjectThatIsThereIsFound(t *testing.T) {
	s := linked(t)
	op := s.refuse(history.Create, obj(history.Ratings, 5), 400, "x")
	op.Fields["parent"] = toJSON(obj(history.Parents, 4).UUID)
	expect(t, s)
	op.Fields["parent"] = toJSON(parent.UUID)
	expect(t, s, WrongReply)
}
