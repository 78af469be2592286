package search_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// under has a store with a rule for lists.
func under(t *testing.T, rules policy.Rules) func(*store.Options) {
	t.Helper()
	compiled, problems := policy.Compile(rules)
	if problems != nil {
		t.Fatal(problems)
	}
	selector, problem := compiled.Selector(policy.List)
	if problem != nil {
		t.Fatal(problem)
	}
	return func(o *store.Options) { o.Policy, o.SearchRule, o.ClientUUIDs = compiled, selector, true }
}

// bothWays runs a test with an index that has all texts, and with one that has what a rule needs.
func bothWays(t *testing.T, test func(t *testing.T, change ...func(*store.Options))) {
	t.Run("shared", func(t *testing.T) { test(t) })
	t.Run("own", func(t *testing.T) { test(t, under(t, policy.Rules{OwnerField: "user", List: "isOwner"})) })
}

// as has a user search over HTTP.
func as(ctx context.Context, user string) context.Context {
	u := object.Object{}
	u.Set("uuid", user)
	return store.WithCall(ctx, store.Call{Client: true, Origin: event.OriginHTTP, User: u})
}

// Texts of ada, and such of others as change what a search that knows all texts finds first, whether it has a cursor,
// and what it takes.
var (
	ofAda = map[string]string{
		"a1": "ant ant ant bee note", "a2": "ant bee bee bee note", "a3": "note cat", "a4": "note note dog white whale",
		"a5": "whale white", "a6": "antler antenna " + strings.Repeat("long ", 80),
	}
	words = []string{
		"note", "ant bee", "ant", "no*", "ant*", "zz*", "zebra", "note -cat", "note -zebra", `"white whale"`,
		`note -"white whale"`, "ant -ze*", "no* an*", "-note", "whale",
	}
)

// size has what is found of others exceed the budget of a page, which then has a cursor.
var size = strings.Repeat("x", 4<<10)

func ofOthers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("ant note white whale zebra zz%04da antx%04d no%04d", i, i, i))
	}
	return all
}

// told is all that searches tell a user.
func (p *place) told(user string) string {
	p.Helper()
	var b strings.Builder
	for _, q := range words {
		for _, limit := range []int{1, 2, 50} {
			before, cursor := p.service.Scored(), ""
			for page := 0; page < 20; page++ {
				l, err := p.store.List(as(p.Context(), user),
					store.ListOptions{Words: q, Limit: limit, Cursor: cursor, Count: store.CountExact, Explain: true})
				if err != nil {
					fmt.Fprintf(&b, "%s: %v\n", q, err)
					break
				}
				fmt.Fprintf(&b, "%s, %d: %s; count %v, read %d, more %v, before %v\n", q, limit, uuids(l), *l.Count,
					l.Plan.Read, l.Next != "", l.Back != "")
				if cursor = l.Next; cursor == "" {
					break
				}
			}
			fmt.Fprintf(&b, "scored %d\n", p.service.Scored()-before)
		}
	}
	return b.String()
}

// TestSearchesTellNothingOfOthers: what a search finds, in which order, whether there is a cursor, an error, and how
// many objects and documents that takes are the same whatever others have.
func TestSearchesTellNothingOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		rules policy.Rules
		mine  string // properties of what ada may list
		other string // and of what she may not
	}{
		"the owner":         {policy.Rules{OwnerField: "user", List: "isOwner"}, `"user":"ada"`, `"user":"bob"`},
		"the owner's rules": {policy.Rules{Owner: true}, `"public":true`, `"user":"bob","public":false`},
		"a list": {policy.Rules{List: "user.uuid in object.readers"}, `"readers":["x","ada"]`,
			`"readers":["bob"]`},
		"a list of objects": {policy.Rules{List: `object.readers.exists(r, r.id == user.uuid && r.role != "none")`},
			`"readers":[{"id":"ada","role":"x"}]`, `"readers":[{"id":"ada","role":"none"},{"id":"bob","role":"x"}]`},
		"what it is not": {policy.Rules{List: "object.hiddenFrom != user.uuid"}, `"hiddenFrom":"bob"`,
			`"hiddenFrom":"ada"`},
		"of those one's own": {policy.Rules{OwnerField: "user", List: "isOwner && object.draft == false"},
			`"user":"ada","draft":false`, `"user":"ada","draft":true`},
		"the object alone": {policy.Rules{List: "size(object.kind) > 3"}, `"kind":"open"`, `"kind":"no"`},
		"one without a value": {policy.Rules{OwnerField: "user", List: "isOwner || object.public == true"},
			`"user":"ada"`, `"x":1`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, search.Settings{Fields: []string{"title", "more"}, Language: "en"}, under(t, c.rules))
			for uuid, text := range ofAda {
				p.save(uuid, fmt.Sprintf(`{%s,"title":%q}`, c.mine, text))
			}
			p.start()
			p.caughtUp()
			before := p.told("ada")
			for i, text := range ofOthers(1100) {
				p.save(fmt.Sprintf("o%d", i),
					fmt.Sprintf(`{%s,"title":%q,"more":"note whale","size":%q}`, c.other, text, size))
			}
			p.caughtUp()
			if after := p.told("ada"); after != before {
				t.Errorf("alone\n%swith others\n%s", before, after)
			}
			for _, has := range []string{
				"note, 50: a4 a3 a1 a2; ", "note, 1: a4; count {4 exact}, read 1, more true", "ant bee, 50: a1 a2; ",
				"zebra, 50: ; count {0 exact}, read 0, more false", "\"white whale\", 50: a4; ",
				"note -\"white whale\", 50: a3 a1 a2; ",
				"no*, 50: a4 a3 a1 a2; ", "zz*, 50: ; ", "-note: q: has no word to find",
			} {
				if !strings.Contains(before, has) {
					t.Errorf("expected %q in\n%s", has, before)
				}
			}
		})
	}
}

// TestAnotherRule: an index that has the terms of another rule is not searched, but built again, at a reload and at a
// start.
func TestAnotherRule(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}},
		under(t, policy.Rules{OwnerField: "user", List: "isOwner"}))
	p.save("one", `{"user":"ada","title":"whale"}`)
	p.save("two", `{"user":"bob","readers":["ada"],"title":"whale"}`)
	p.start()
	p.caughtUp()
	found := func(s *store.Store) string {
		l, err := s.List(as(t.Context(), "ada"), store.ListOptions{Words: "whale"})
		if err != nil {
			return err.Error()
		}
		return uuids(l)
	}
	if got := found(p.store); got != "one" {
		t.Errorf("before: %s", got)
	}
	before := p.store
	o := store.Options{Name: "Books", Outbox: p.relay, Search: p.settings.Fields,
		Searcher: search.NewClient(p.bus.Conn())}
	under(t, policy.Rules{OwnerField: "user", List: "user.uuid in object.readers"})(&o)
	var err error
	if p.store, err = p.store.Reconfigured(t.Context(), nil, o); err != nil {
		t.Fatal(err)
	}
	const wait = "q: the text of Books is being indexed; try again"
	if got := found(p.store); got != wait {
		t.Errorf("before the index is built: %s", got)
	}
	p.settings.Rule = p.store.SearchRule()
	p.service.Reload([]search.Indexed{{Store: p.store, Settings: p.settings}})
	kit.WaitFor(t, "the index to be built again", func() bool { return found(p.store) == "two" })
	if got := found(before); got != wait {
		t.Errorf("with the rule of before: %s", got)
	}
	p.save("three", `{"readers":["bob","ada"],"title":"whale"}`)
	p.save("four", `{"readers":["bob"],"title":"whale"}`)
	p.caughtUp()
	if got := found(p.store); got != "three two" {
		t.Errorf("after a reload: %s", got)
	}
	p.stop()
	p.store, p.settings.Rule = before, before.SearchRule()
	p.start()
	p.caughtUp()
	if got := found(p.store); got != "one" {
		t.Errorf("after a start: %s", got)
	}
}

// TestALongBeginning: of a beginning so many characters count.
func TestALongBeginning(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}}, under(t, policy.Rules{OwnerField: "user", List: "isOwner"}))
	p.save("one", `{"user":"ada","title":"donaudampfschifffahrtsgesellschaft"}`)
	p.save("two", `{"user":"ada","title":"donaudampfschifffahrt"}`)
	p.start()
	p.caughtUp()
	for q, want := range map[string]string{"donau*": "two one", "DONAUdampfschifffahrts*": "one",
		"donaudampfschifffahrtsgesell*": "one", "donaudampfschifffahrtsgesetz*": "one",
		"donaudampfschifffahrtsbuch*": ""} {
		if got := p.find(q); got != want {
			t.Errorf("%s: %q, expected %q", q, got, want)
		}
	}
}

// TestTooManyValues: a search is for objects with so many values at most.
func TestTooManyValues(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}},
		under(t, policy.Rules{List: "object.team in user.teams"}))
	p.save("one", `{"team":7,"title":"whale"}`)
	p.start()
	p.caughtUp()
	for n, want := range map[int]string{1000: "one",
		1001: "q: the rule of this store allows you objects with more than 1000 values: too many to search"} {
		teams := make([]int, n)
		for i := range teams {
			teams[i] = i
		}
		u := object.Object{}
		u.Set("uuid", "ada")
		u.Set("teams", teams)
		l, err := p.store.List(store.WithCall(t.Context(), store.Call{Client: true, Origin: event.OriginHTTP, User: u}),
			store.ListOptions{Words: "whale"})
		got := uuids(l)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// TestAReloadThatIsTakenBack: what a build has made for the rule of a moment takes no place of the index that answers.
func TestAReloadThatIsTakenBack(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}}, under(t, policy.Rules{OwnerField: "user", List: "isOwner"}))
	p.save("one", `{"user":"ada","title":"whale"}`)
	p.start()
	p.caughtUp()
	settings := p.settings
	o := store.Options{Name: "Books", Outbox: p.relay, Search: p.settings.Fields, Searcher: search.NewClient(p.bus.Conn())}
	under(t, policy.Rules{OwnerField: "user", List: "user.uuid in object.readers"})(&o)
	other, err := p.store.Reconfigured(t.Context(), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	settings.Rule = other.SearchRule()
	p.scans.Store(0)
	p.pause.Lock()
	p.service.Reload([]search.Indexed{{Store: other, Settings: settings}})
	kit.WaitFor(t, "the build to read", func() bool { return p.scans.Load() > 0 })
	p.service.Reload([]search.Indexed{{Store: p.store, Settings: p.settings}})
	p.pause.Unlock()
	kit.WaitFor(t, "what was built to be removed", func() bool {
		folders, err := os.ReadDir(filepath.Join(p.folder, "Books"))
		return err == nil && len(folders) == 1 && folders[0].Name() == "1"
	})
	if l, err := p.store.List(as(t.Context(), "ada"), store.ListOptions{Words: "whale"}); err != nil ||
		uuids(l) != "one" {
		t.Errorf("%v %v", l, err)
	}
}
