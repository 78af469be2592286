package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// scanResult is a Searcher that finds the same objects for all words, and notes the fields that were searched.
type scanResult struct {
	uuids  []string
	fields []string
}

func (f *scanResult) Search(_ context.Context, _ string, s store.TextSearch) ([]store.TextHit, bool, error) {
	f.fields = s.Fields
	from := slices.Index(f.uuids, string(s.After)) + 1
	var hits []store.TextHit
	for _, uuid := range f.uuids[from:min(len(f.uuids), from+s.Limit)] {
		hits = append(hits, store.TextHit{UUID: uuid, Position: []byte(uuid)})
	}
	return hits, len(hits) == s.Limit, nil
}

// What a search finds is a list: a field is searched for those who may read it of every object, and the rule decides
// about each object that is found.
func TestASearchFindsNoFieldThatIsHidden(t *testing.T) {
	found := &scanResult{uuids: []string{"gone", "c", "a", "b", "d"}}
	s, _ := open(t, store.Options{
		Policy:      compile(t, policy.Rules{OwnerField: "user", List: "object.public == true || isOwner"}),
		ClientUUIDs: true, Indexes: noteIndexes,
		Fields:   fieldsOf(t, map[string]policy.FieldRule{"secret": {Read: "isOwner"}, "note": {Read: "user != null"}}),
		Private:  []string{"pin"},
		Search:   []string{"secret.part", "note", "title"},
		Searcher: found,
	})
	anonymous := store.WithCall(t.Context(), store.Call{Client: true, Origin: event.OriginHTTP})
	save(t, s, "a", `{"user":"ada","public":false,"title":"x","year":1}`)
	save(t, s, "b", `{"user":"bob","public":true,"title":"x","year":2,"secret":"y"}`)
	save(t, s, "c", `{"user":"ada","public":true,"title":"x","year":3}`)
	save(t, s, "d", `{"user":"bob","public":false,"title":"x"}`)
	for _, of := range []struct {
		ctx    context.Context
		filter string
		uuids  string
		fields string
	}{
		{t.Context(), "", "c a b d", "secret.part note title"},
		{as(t.Context(), "ada"), "", "c a b", "note title"},
		{as(t.Context(), "bob"), "year != 3", "b d", "note title"},
		{anonymous, "", "c b", "title"},
	} {
		var uuids []string
		for cursor := ""; ; {
			l, err := s.List(of.ctx, store.ListOptions{Words: "x", Filter: of.filter, Limit: 1, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range l.Objects {
				uuids = append(uuids, o.UUID)
			}
			if cursor = l.Next; cursor == "" {
				break
			}
		}
		if got := strings.Join(uuids, " "); got != of.uuids || strings.Join(found.fields, " ") != of.fields {
			t.Errorf("%q of %v, expected %q of %q", got, found.fields, of.uuids, of.fields)
		}
	}
	for _, of := range []struct {
		ctx     context.Context
		options store.ListOptions
		is      error
	}{
		{as(t.Context(), "ada"), store.ListOptions{Words: "x", Filter: `secret == "y"`}, errs.Invalid},
		{anonymous, store.ListOptions{Words: "x", Filter: `note == "y"`}, errs.Unauthenticated},
		{as(t.Context(), "ada"), store.ListOptions{Words: "x", Filter: `pin == 1`}, errs.Invalid},
		{as(t.Context(), "ada"), store.ListOptions{Words: "x", Filter: `year == 1 || !(pin > 1)`}, errs.Invalid},
		{as(t.Context(), "ada"), store.ListOptions{Words: "x", Filter: `has(object["_requests"])`}, errs.Invalid},
		{store.WithCall(t.Context(), store.Call{Client: true, Trusted: true, Origin: event.OriginBus}),
			store.ListOptions{Words: "x", Filter: `pin == 1`}, errs.Invalid},
	} {
		if _, err := s.List(of.ctx, of.options); !errors.Is(err, of.is) {
			t.Errorf("%v: %v, expected %v", of.options, err, of.is)
		}
	}
	found.fields = nil
	hidden := s.WithOptions(func(o *store.Options) { o.Search = []string{"secret.part"} })
	if _, err := hidden.List(as(t.Context(), "ada"), store.ListOptions{Words: "x"}); !errors.Is(err, errs.Invalid) ||
		found.fields != nil {
		t.Errorf("nothing that may be searched: %v, %v", err, found.fields)
	}
}

// Whoever may see no object, whatever is found, makes nobody search.
func TestASearchOfWhoMaySeeNothingIsNotMade(t *testing.T) {
	for _, rule := range []string{"isOwner", "user != null && object.public == true",
		"object.team in user.teams.map(t, t.team)", "user.uuid in object.tags"} {
		for _, own := range []bool{false, true} {
			if !own && rule == "user.uuid in object.tags" {
				continue // it names no values of an index of lists
			}
			found := &scanResult{uuids: []string{"a"}}
			o := store.Options{
				Policy: compile(t, policy.Rules{OwnerField: "user", List: rule}), ClientUUIDs: true,
				Indexes: noteIndexes, Search: []string{"title"}, Searcher: found,
			}
			if own {
				if o.SearchRule, _ = o.Policy.Selector(policy.List); o.SearchRule == nil {
					t.Fatal(rule)
				}
			}
			s, _ := open(t, o)
			save(t, s, "a", `{"user":"ada","public":true,"title":"x"}`)
			anonymous := store.WithCall(t.Context(), store.Call{Client: true, Origin: event.OriginHTTP})
			l, err := s.List(anonymous, store.ListOptions{Words: "x", Count: store.CountExact})
			if err != nil || len(l.Objects) != 0 || l.Next != "" || found.fields != nil {
				t.Errorf("%s: %v, %v; searched %v", rule, l, err, found.fields)
			}
			if _, err := s.List(as(t.Context(), "ada"), store.ListOptions{Words: "x"}); err != nil ||
				(found.fields == nil) != strings.Contains(rule, "teams") {
				t.Errorf("%s: %v; searched %v", rule, err, found.fields)
			}
		}
	}
}
