package sse_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/sse"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// graded is a user with a grade, whose object has a revision.
func graded(uuid string, grade int, revision uint64) *sse.Viewer {
	v := user(uuid)
	v.User["grade"] = fmt.Append(nil, grade)
	v.Key, v.Revision = fmt.Sprint(uuid, grade, revision), revision
	return v
}

// Which rights a client had is not known from its present ones. A client is not sent that an object has left which left
// before it had the rights to get it, from whatever id it resumes. A client whose rights have changed is sent a reset.
func TestWhoGainsRightsDoesNotLearnWhatLeftBefore(t *testing.T) {
	t.Parallel()
	const gradeRule = `has(object.mark) || user != null && user.grade >= object.grade`
	for name, c := range map[string]struct {
		before, after int // the user's grade
		rules         string
		want          string // is sent to the one who resumes
	}{
		"same rights":         {2, 2, "", "L"},
		"a better grade":      {1, 2, "", "!"},
		"a worse grade":       {2, 1, "", "!"},
		"other rules":         {2, 2, "others", "!"},
		"grades, other rules": {1, 2, "others", "!"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.open("Notes", &policy.Rules{Get: gradeRule})
			w.start()
			want := sse.Subscription{UUIDs: []string{"n", "mark"}}
			w.save("Notes", "n", `{"grade":2}`)
			e := w.listen(want, graded("ada", c.before, 1))
			id := e.sentID()
			e.leave()
			w.save("Notes", "n", `{"grade":3}`)
			w.save("Notes", "mark", `{"mark":1,"z":0}`)
			w.start(func(o *sse.Options) { o.Rules = map[string]string{"Notes": c.rules} })
			revision := uint64(1)
			if c.after != c.before {
				revision = 2
			}
			// An id that belfry sent with the reset proves no more.
			for range 2 {
				want.After = id
				e = w.listen(want, graded("ada", c.after, revision))
				e.hasMark("1")
				if got := e.letters(); got != c.want {
					t.Fatalf("is sent %q, want %q", got, c.want)
				}
				e.leave()
				e.mu.Lock()
				id = e.ids[0] // of the reset, or of ready
				e.mu.Unlock()
				c.want = strings.TrimPrefix(c.want, "!")
			}
		})
	}
}

// While a client is connected, a change of its user is followed by a reset, once. What leaves later is sent.
func TestAChangeOfTheUserResetsAStreamOfSomeObjects(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.open("Notes", &policy.Rules{Get: `has(object.mark) || user.grade >= object.grade`})
	w.open("Users", nil)
	w.start(func(o *sse.Options) {
		o.Identity, o.Heartbeat = []string{"Users"}, 10*time.Millisecond
		o.Stores = o.Stores[:2]
	})
	e := w.listen(sse.Subscription{UUIDs: []string{"n", "mark"}}, graded("ada", 1, 1))
	all := w.listen(sse.Subscription{}, graded("ada", 1, 1))
	free := w.listen(sse.Subscription{Stores: []string{"Books"}, UUIDs: []string{"end"}}, graded("ada", 1, 1))
	w.save("Notes", "n", `{"grade":2}`)
	w.save("Notes", "n", `{"grade":3}`)
	w.save("Notes", "mark", `{"mark":0,"z":0}`)
	e.hasMark("0")
	for _, client := range []*testClient{e, all, free} {
		client.becomes(graded("ada", 3, 2), nil)
	}
	w.save("Users", "ada", `{}`)
	kit.WaitFor(t, "the reset arrives", func() bool { return strings.Contains(e.letters(), "!") })
	w.save("Notes", "n", `{"grade":4}`)
	w.save("Notes", "n", `{"grade":5}`)
	w.save("Notes", "mark", `{"mark":1,"z":0}`)
	w.save("Books", "end", `{}`)
	e.hasMark("1")
	if got := e.letters(); got != "!L" {
		t.Errorf("is sent %q", got)
	}
	free.receives("Store.Saved Books end")
	kit.WaitFor(t, "the last event arrives", func() bool {
		list := all.received()
		return len(list) > 0 && list[len(list)-1].data["uuid"] == "end"
	})
	if got := all.letters(); strings.ContainsAny(got, "!L") {
		t.Errorf("a stream of all objects is sent %q", got)
	}
}

// A rule that depends on the time is evaluated as of the write for an object that the user may no longer get.
func TestWhatWasNotYetOpenWhenItLeftIsNotSent(t *testing.T) {
	t.Parallel()
	for opened, want := range map[string]string{"2019-01-01": "L", "2020-06-01": "", "2999-01-01": ""} {
		w := newFixture(t)
		w.open("Notes", &policy.Rules{Get: `has(object.mark) || timestamp(object.opens) <= now`})
		w.start()
		e := w.listen(sse.Subscription{UUIDs: []string{"n", "mark"}}, anonymous())
		w.save("Notes", "n", `{"opens":"2999-01-01T00:00:00Z"}`)
		at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		w.publish(event.Subject(event.StoreUpdated, "Notes", "n"), fmt.Sprintf(`{"id":"e","event":"Store.Updated",`+
			`"time":"2020-01-01T00:00:00.000000Z","store":"Notes","uuid":"n","revision":"%d","actor":null,`+
			`"origin":"http","object":{"uuid":"n","opens":"2999-01-01T00:00:00Z"},`+
			`"previous":{"opens":"%sT00:00:00Z"},"ctx":{}}`, at.UnixMicro(), opened))
		w.save("Notes", "mark", `{"mark":1,"z":0}`)
		e.hasMark("1")
		if got := e.letters(); got != want {
			t.Errorf("opened %s: is sent %q, want %q", opened, got, want)
		}
	}
}

// An event that is published late is not sent to a user who was changed after its write.
func TestALateEventDoesNotRevealWhatLeftBeforeTheUserChanged(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	s := w.open("Notes", &policy.Rules{Get: `has(object.mark) || user.grade >= object.grade`})
	w.start()
	w.save("Notes", "n", `{"grade":2}`)
	w.save("Notes", "n", `{"grade":3}`)
	n, err := s.Get(t.Context(), "n")
	w.must(err)
	sent := func(v *sse.Viewer) *testClient { return w.listen(sse.Subscription{UUIDs: []string{"n", "mark"}}, v) }
	before, after := sent(graded("ada", 2, n.Revision-1)), sent(graded("ada", 2, n.Revision+1))
	w.publish(event.Subject(event.StoreUpdated, "Notes", "n"), fmt.Sprintf(`{"id":"e","event":"Store.Updated",`+
		`"time":"2020-01-01T00:00:00.000000Z","store":"Notes","uuid":"n","revision":"%d","actor":null,`+
		`"origin":"http","object":{"uuid":"n","grade":3},"previous":{"grade":2},"ctx":{}}`, n.Revision))
	w.save("Notes", "mark", `{"mark":1,"z":0}`)
	for e, want := range map[*testClient]string{before: "L", after: ""} {
		e.hasMark("1")
		if got := e.letters(); got != want {
			t.Errorf("is sent %q, want %q", got, want)
		}
	}
}

// A filter by a field would reveal its value. So it is refused for a field that the user may not read of every object,
// as in a list, and the stream ends where the user may no longer read it.
func TestAFilterReadsOnlyWhatTheUserMay(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	fields, problems := policy.CompileFields(policy.Rules{OwnerField: "user"}, map[string]policy.FieldRule{
		"wage": {Read: `user.grade > 1`}, "own": {Read: `isOwner`}, "free": {Read: `true`}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s, err := store.Open(t.Context(), w.backend,
		store.Options{Name: "Notes", Fields: fields, Private: []string{"secret"}, Outbox: w})
	w.must(err)
	w.stores["Notes"] = s
	w.start()
	notes := []string{"Notes"}
	for filter, c := range map[string]struct {
		who  *sse.Viewer
		want errs.Kind
	}{
		`wage == 1`:                   {anonymous(), errs.Unauthenticated},
		`n == 1 || wage > 1`:          {graded("ada", 1, 1), errs.Denied},
		`own == 1`:                    {graded("ada", 2, 1), errs.Invalid},
		`secret == 1`:                 {graded("ada", 2, 1), errs.Invalid},
		`has(_binaries)`:              {graded("ada", 2, 1), errs.Invalid},
		`n == 1 || !has(secret.city)`: {graded("ada", 2, 1), errs.Invalid},
	} {
		kind(t, w.connect(sse.Subscription{Stores: notes, Filter: filter}, c.who).refused(), c.want, "filter")
	}
	e := w.listen(sse.Subscription{Stores: notes, Filter: `wage > 1 && free == 1`}, graded("ada", 2, 1))
	w.save("Notes", "a", `{"wage":2,"free":1}`)
	w.save("Notes", "b", `{"wage":1,"free":1}`)
	w.save("Notes", "c", `{"wage":2,"free":1}`)
	e.receives("Store.Saved Notes a", "Store.Saved Notes c")
	id := e.sentID()
	e.leave()
	if err := w.connect(sse.Subscription{Stores: notes, Filter: `wage > 1`, After: id}, graded("ada", 1,
		2)).refused(); err == nil {
		t.Error("it resumes")
	}
}

// A stream ends before the next event if its user may no longer read a field of its filter.
func TestAStreamEndsWhenAFieldOfItsFilterIsHidden(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	fields, problems := policy.CompileFields(policy.Rules{},
		map[string]policy.FieldRule{"wage": {Read: `user.grade > 1`}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s, err := store.Open(t.Context(), w.backend, store.Options{Name: "Notes", Fields: fields, Outbox: w})
	w.must(err)
	w.stores["Notes"] = s
	w.open("Users", nil)
	w.start(func(o *sse.Options) { o.Identity, o.Stores = []string{"Users"}, o.Stores[:1] })
	e := w.listen(sse.Subscription{Stores: []string{"Notes"}, Filter: `wage > 1`}, graded("ada", 2, 1))
	w.save("Notes", "a", `{"wage":2}`)
	e.receives("Store.Saved Notes a")
	e.becomes(graded("ada", 1, 2), nil)
	w.save("Users", "ada", `{}`)
	w.save("Notes", "b", `{"wage":2}`)
	if reason := e.ends(); !strings.Contains(reason, "a field that the filter names") {
		t.Errorf("the reason is %q", reason)
	}
	e.receives("Store.Saved Notes a", "reset", "dropped")
}

// What selects objects is validated.
func TestASelectionOfObjectsIsValidated(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.open("Notes", nil)
	w.start(func(o *sse.Options) { o.Accounts = "Users" })
	many := make([]string, sse.MaxUUIDs+1)
	for i := range many {
		many[i] = fmt.Sprint("u", i)
	}
	notes := []string{"Notes"}
	for says, s := range map[string]sse.Subscription{
		"more than 100":            {UUIDs: many},
		"not a uuid":               {UUIDs: []string{"a/b"}},
		"name the store":           {Filter: "a == 1"},
		"and no other":             {Filter: "a == 1", Stores: []string{"Notes", "Books"}},
		"have no object":           {Filter: "a == 1", Stores: notes, Events: []string{"Auth.*"}},
		"longer than":              {Filter: `a == "` + strings.Repeat("x", 5000) + `"`, Stores: notes},
		"more than 100 conditions": {Filter: strings.Repeat("a==1||", 120) + "a==1", Stores: notes},
		"levels deep": {Filter: strings.Repeat("!(", 60) + "a==1" + strings.Repeat(")", 60),
			Stores: notes},
		"a condition is expected":      {Filter: "a", Stores: notes},
		"fields: a name is missing":    {Fields: "a,,b"},
		"only one level below a field": {Fields: "a.b.c"},
	} {
		kind(t, w.hub.Validate(s), errs.Invalid, says)
	}
	for _, s := range []sse.Subscription{{UUIDs: many[1:]}, {Filter: "a == 1", Stores: notes, UUIDs: []string{"a"}},
		{Fields: "a"}, {Filter: " ", Stores: nil}, {UUIDs: []string{"a"}, Events: []string{"Store.Saved"}}} {
		if err := w.hub.Validate(s); err != nil {
			t.Error(err)
		}
	}
}

// Filters that are slow on large objects cost from the budget of rules, and delay their own stream alone.
func TestFiltersCostFromTheBudgetOfRules(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.opts.Registry = prometheus.NewRegistry()
	w.open("Notes", nil)
	w.start()
	sse.LimitRuleCost(w.hub, 1000)
	notes := []string{"Notes"}
	slow := strings.TrimSuffix(strings.Repeat(`"x" in a || `, 99), " || ") + " || true == n"
	e := w.listen(sse.Subscription{Stores: notes, Filter: slow}, user("ada"))
	other := w.listen(sse.Subscription{Stores: notes}, user("bob"))
	var want []string
	for i := range 4 {
		uuid := fmt.Sprint("n", i)
		w.save("Notes", uuid, `{"n":true,"a":[`+strings.Repeat("1,", 50_000)+`1]}`)
		want = append(want, "Store.Saved Notes "+uuid)
	}
	other.receives(want...)
	kit.WaitFor(t, "the stream waits", func() bool { return w.metric("belfry_live_rule_waits_total") > 0 })
	if n := len(e.received()); n == len(want) {
		t.Errorf("%d events were filtered for a user whose rules may cost no more", n)
	}
}
