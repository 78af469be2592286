package sse_test

import (
	"testing"

	"belfry/pkg/api/sse"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Whether an object could be read before a write, by what its reference named then, is not known when the linked object
// may have changed since. So nothing is sent about an object that the user may not get.
func TestLeftDoesNotFollowLinkedObjectsAsTheyAreNow(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	books := w.open("Books", nil)
	rules, problems := policy.Compile(policy.Rules{References: []string{"recipe"}, Get: "linked.recipe.published"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	notes, err := store.Open(t.Context(), w.backend, store.Options{
		Name: "Notes", Policy: rules, Outbox: w, ClientUUIDs: true,
		References: []store.Reference{{Field: "recipe", Target: "Books"}},
	})
	w.must(err)
	w.stores["Notes"] = notes
	store.NewSet([]*store.Store{books, notes}, nil)
	w.save("Books", "later", `{"published":false}`)
	w.save("Books", "never", `{"published":false}`)
	w.save("Books", "open", `{"published":true}`)
	w.start()
	want := sse.Subscription{Stores: []string{"Notes"}, UUIDs: []string{"n", "mark"}}
	before := w.listen(want, anonymous())
	id := before.sentID()
	before.leave()
	w.save("Notes", "n", `{"recipe":"later"}`)
	w.save("Notes", "n", `{"recipe":"never"}`)
	w.save("Books", "later", `{"published":true}`)
	w.save("Notes", "mark", `{"recipe":"open","mark":1,"z":0}`)
	want.After = id
	e := w.listen(want, anonymous())
	e.hasMark("1")
	if got := e.letters(); got != "" {
		t.Errorf("is sent %q", got)
	}
}
