package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// watchedBackend counts the reads of single objects by store, and can fail those of one store.
type watchedBackend struct {
	driver.Backend
	reads  map[string]*atomic.Int64
	broken atomic.Pointer[string]
}

func (b *watchedBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	b.reads[spec.Name] = &atomic.Int64{}
	return watchedStore{s, spec.Name, b}, err
}

type watchedStore struct {
	driver.Store
	name string
	of   *watchedBackend
}

func (s watchedStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	s.of.reads[s.name].Add(1)
	if broken := s.of.broken.Load(); broken != nil && *broken == s.name {
		return driver.Record{}, false, errs.New(errs.Unavailable, "%s is unavailable", s.name)
	}
	return s.Store.Get(ctx, uuid)
}

func (b *watchedBackend) breaks(name string) { b.broken.Store(&name) }

// kitchen has Recipes, Users, and Comments whose rules read them.
type kitchen struct {
	recipes, users, comments *store.Store
	backend                  *watchedBackend
	at                       atomic.Int64 // the time, in nanoseconds since now
}

var commentReferences = []string{"recipe", "user", "of"}

func newKitchen(t *testing.T, comments store.Options) *kitchen {
	t.Helper()
	files, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	k := &kitchen{backend: &watchedBackend{Backend: files, reads: map[string]*atomic.Int64{}}}
	began := time.Now()
	now := func() time.Time { return began.Add(time.Duration(k.at.Load())) }
	one := func(o store.Options) *store.Store {
		o.Now = now
		s, err := store.Open(t.Context(), k.backend, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	k.recipes = one(store.Options{Name: "Recipes", Private: []string{"secret"}})
	k.users = one(store.Options{
		Name: "Users", Private: []string{"password"},
		SeenByRules: func(seen, stored object.Object) {
			if delete(seen, "admin"); stored["_admin"] != nil {
				seen.Set("admin", true)
			}
		},
	})
	comments.Name = "Comments"
	if comments.References == nil {
		comments.References = []store.Reference{
			{Field: "recipe", Target: "Recipes"}, {Field: "user", Target: "Users"}, {Field: "of", Target: "Comments"},
		}
	}
	k.comments = one(comments)
	store.NewSet([]*store.Store{k.recipes, k.users, k.comments}, nil)
	save(t, k.recipes, "open", `{"published":true,"secret":7}`)
	save(t, k.recipes, "closed", `{"published":false}`)
	k.backend.reads["Recipes"].Store(0)
	return k
}

func (k *kitchen) set(t *testing.T, recipe, text string) {
	t.Helper()
	if _, err := k.recipes.Update(t.Context(), parse(t, text), store.UpdateOptions{UUID: recipe}); err != nil {
		t.Fatal(err)
	}
}

func (k *kitchen) rules(t *testing.T, r policy.Rules) *policy.Policy {
	t.Helper()
	r.References = commentReferences
	return compile(t, r)
}

func publishedRules(t *testing.T) *policy.Policy {
	t.Helper()
	rule := "linked.recipe.published"
	return compile(t, policy.Rules{Create: rule, Get: rule, Update: rule, Delete: rule, References: commentReferences})
}

// Each operation asks the object that the reference names; that of a write names the recipe after it.
func TestLinkedObjectsDecideOperations(t *testing.T) {
	k := newKitchen(t, store.Options{Policy: publishedRules(t), ClientUUIDs: true})
	ctx := as(t.Context(), "ann")
	update := func(ctx context.Context, text string, patch bool) error {
		_, err := k.comments.Update(ctx, parse(t, text), store.UpdateOptions{UUID: "c", Patch: patch})
		return err
	}
	for body, allowed := range map[string]bool{
		`{"recipe":"open"}`: true, `{"recipe":"closed"}`: false, `{"recipe":"gone"}`: false, `{}`: false,
		`{"recipe":["open"]}`: false, `{"recipe":null}`: false, `{"recipe":{"uuid":"open"}}`: false,
		`{"recipe":"_x/../open"}`: false,
	} {
		_, err := k.comments.Save(ctx, parse(t, body), "")
		checked := k.comments.Check(ctx, parse(t, body), "")
		if (err == nil) != allowed || (checked == nil) != allowed || !allowed && errs.KindOf(err) != errs.Denied {
			t.Errorf("create %s: %v; check: %v", body, err, checked)
		}
	}
	save(t, k.comments, "c", `{"recipe":"open"}`)
	for _, patch := range []bool{false, true} {
		for text, allowed := range map[string]bool{
			`{"text":"a"}`: true, `{"recipe":"open"}`: true, `{"recipe":"closed"}`: false, `{"recipe":null}`: false,
		} {
			if err := update(ctx, text, patch); (err == nil) != allowed {
				t.Errorf("update %s: %v", text, err)
			}
			err := k.comments.CheckUpdate(ctx, parse(t, text), store.UpdateOptions{UUID: "c", Patch: patch})
			if (err == nil) != allowed {
				t.Errorf("check of update %s: %v", text, err)
			}
		}
	}
	mutate := func(fields string) error {
		m := func(store.Stored) (store.Mutation, error) { return store.Mutation{Fields: parse(t, fields)}, nil }
		_, err := k.comments.Mutate(ctx, "c", m)
		return err
	}
	if err := mutate(`{"files":[]}`); err != nil {
		t.Error(err)
	}
	kind(t, mutate(`{"recipe":"closed"}`), errs.Denied)
	for input, want := range map[string]bool{`{"files":[]}`: true, `{"recipe":[]}`: false} {
		_, err := k.comments.GetAuthorized(ctx, "c", policy.Update, parse(t, input))
		if (err == nil) != want {
			t.Error(input, err)
		}
	}
	// The right is lost at once.
	k.set(t, "open", `{"published":false}`)
	ctx = as(t.Context(), "ann")
	_, err := k.comments.Get(ctx, "c")
	kind(t, err, errs.Denied)
	kind(t, update(ctx, `{"text":"b"}`, true), errs.Denied)
	kind(t, k.comments.Delete(ctx, "c", 0), errs.Denied)
	kind(t, k.comments.CheckDelete(ctx, "c"), errs.Denied)
	kind(t, mutate(`{"files":[]}`), errs.Denied)
	for _, op := range []policy.Op{policy.Get, policy.Update, policy.Delete} {
		_, err := k.comments.GetAuthorized(ctx, "c", op, parse(t, `{"files":[]}`))
		kind(t, err, errs.Denied)
	}
	// The program, and clients whom another layer authorizes, follow no rule.
	trusted := store.WithCall(t.Context(), store.Call{Client: true, Trusted: true, Origin: event.OriginBus})
	for _, ctx := range []context.Context{t.Context(), trusted} {
		if err := update(ctx, `{"recipe":"closed"}`, true); err != nil {
			t.Error(err)
		}
	}
	// Moving it to one that is published is judged by that one.
	k.set(t, "open", `{"published":true}`)
	if err := update(as(t.Context(), "ann"), `{"recipe":"open"}`, true); err != nil {
		t.Error(err)
	}
	if err := k.comments.Delete(as(t.Context(), "ann"), "c", 0); err != nil {
		t.Error(err)
	}
}

// The reference of a rule can be a copy, or computed: rules see what the write makes of it.
func TestLinkedObjectsOfDerivedReferences(t *testing.T) {
	for name, o := range map[string]store.Options{
		"copied":   {Copies: []store.Copy{{Field: "recipe", Reference: "of", Source: "Comments", From: "recipe"}}},
		"computed": {Computed: computed(t, map[string]string{"recipe": "has(object.name) ? string(object.name) : ''"})},
	} {
		t.Run(name, func(t *testing.T) {
			o.Policy, o.ClientUUIDs = publishedRules(t), true
			k := newKitchen(t, o)
			if name == "copied" { // comments on comments; the first one is not a comment on another
				save(t, k.comments, "on-open", `{}`)
				save(t, k.comments, "on-closed", `{}`)
				for _, recipe := range []string{"open", "closed"} {
					uuid := "on-" + recipe
					base, _ := k.comments.Get(t.Context(), uuid)
					_, err := store.NewWorker(k.comments).CompareAndSet(t.Context(), base,
						object.Object{"recipe": object.AppendString(nil, recipe)})
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			ctx := as(t.Context(), "ann")
			body := map[string]string{"copied": `{"of":"on-%s"}`, "computed": `{"name":"%s"}`}[name]
			for _, recipe := range []string{"open", "closed", "gone"} {
				_, err := k.comments.Save(ctx, parse(t, fmt.Sprintf(body, recipe)), "new-"+recipe)
				if (err == nil) != (recipe == "open") {
					t.Error(recipe, err)
				}
			}
			o := store.UpdateOptions{UUID: "new-open", Patch: true}
			_, err := k.comments.Update(ctx, parse(t, fmt.Sprintf(body, "closed")), o)
			kind(t, err, errs.Denied)
			if _, err := k.comments.Update(ctx, parse(t, `{"text":"a"}`), o); err != nil {
				t.Error(err)
			}
		})
	}
}

// A request reads a linked object once, and again after it has written it, or after a second.
func TestLinkedObjectsAreReadOnceARequest(t *testing.T) {
	rules := publishedRules(t)
	fields, problems := policy.CompileFields(policy.Rules{References: commentReferences}, map[string]policy.FieldRule{
		"a": {Read: "linked.recipe.published", Write: "linked.recipe.published"}, "b": {Read: "has(linked.recipe)"},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	k := newKitchen(t, store.Options{Policy: rules, Fields: fields, ClientUUIDs: true})
	reads := k.backend.reads["Recipes"]
	for i := range 20 {
		save(t, k.comments, fmt.Sprint("c", i), `{"recipe":"open","a":1,"b":2}`)
	}
	ctx := as(t.Context(), "ann")
	for i := range 20 {
		o, err := k.comments.Get(ctx, fmt.Sprint("c", i))
		if err != nil || !strings.Contains(string(o.Body), `"a":1`) {
			t.Fatal(string(o.Body), err)
		}
	}
	if _, err := k.comments.Update(ctx, parse(t, `{"a":3}`), store.UpdateOptions{UUID: "c1", Patch: true}); err != nil {
		t.Fatal(err)
	}
	if got := reads.Load(); got != 1 {
		t.Errorf("%d reads of the recipe", got)
	}
	get := func(ctx context.Context) error {
		_, err := k.comments.Get(ctx, "c0")
		return err
	}
	// Written by the same request.
	if _, err := k.recipes.Update(ctx, parse(t, `{"published":false}`), store.UpdateOptions{UUID: "open"}); err != nil {
		t.Fatal(err)
	}
	kind(t, get(ctx), errs.Denied)
	// Written by another one: the reply of a later step, another request, and another second have it.
	k.set(t, "open", `{"published":true}`)
	kind(t, get(ctx), errs.Denied)
	if _, err := k.comments.Reread(ctx, "c0"); err != nil {
		t.Error(err)
	}
	if err := get(as(t.Context(), "ann")); err != nil {
		t.Error(err)
	}
	k.at.Store(int64(1100 * time.Millisecond))
	if err := get(ctx); err != nil {
		t.Error(err)
	}
	// Contexts that share what they read, as the streams of events do.
	var shared store.LinkedObjects
	before := reads.Load()
	for range 3 {
		if err := get(shared.In(as(t.Context(), "ann"))); err != nil {
			t.Error(err)
		}
	}
	if got := reads.Load() - before; got != 1 {
		t.Errorf("%d reads of the recipe in contexts that share it", got)
	}
}

// Large linked objects are not kept, so the memory of a request is bounded.
func TestLinkedObjectsThatAreKeptAreBounded(t *testing.T) {
	k := newKitchen(t, store.Options{Policy: publishedRules(t), ClientUUIDs: true})
	large := `{"published":true,"text":"` + strings.Repeat("x", 200<<10) + `"}`
	const n = 30 // of which 20 fit
	for i := range n {
		save(t, k.recipes, fmt.Sprint("r", i), large)
		save(t, k.comments, fmt.Sprint("c", i), fmt.Sprintf(`{"recipe":"r%d"}`, i))
	}
	k.backend.reads["Recipes"].Store(0)
	ctx := as(t.Context(), "ann")
	for range 2 {
		for i := range n {
			if _, err := k.comments.Get(ctx, fmt.Sprint("c", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := k.backend.reads["Recipes"].Load(); got <= n || got >= 2*n {
		t.Errorf("%d reads", got)
	}
}

// A linked object that can't be read is no denial: the request is answered later. What does not need it is answered.
func TestUnavailableLinkedObjects(t *testing.T) {
	k := newKitchen(t, store.Options{ClientUUIDs: true, Policy: compile(t, policy.Rules{
		Create: "user != null && linked.recipe.published", Get: "isOwner || linked.recipe.published",
		Update: "isOwner && linked.recipe.published", Delete: "isOwner || linked.recipe.published",
		OwnerField: "user", References: commentReferences,
	})})
	save(t, k.comments, "c", `{"recipe":"open","user":"ann"}`)
	k.backend.breaks("Recipes")
	ann, bob := as(t.Context(), "ann"), as(t.Context(), "bob")
	if _, err := k.comments.Get(ann, "c"); err != nil {
		t.Error(err)
	}
	_, err := k.comments.Get(bob, "c")
	kind(t, err, errs.Unavailable)
	_, err = k.comments.Save(ann, parse(t, `{"recipe":"open"}`), "")
	kind(t, err, errs.Unavailable)
	_, err = k.comments.Save(client(t.Context()), parse(t, `{"recipe":"open"}`), "")
	kind(t, err, errs.Unauthenticated)
	_, err = k.comments.Update(ann, parse(t, `{}`), store.UpdateOptions{UUID: "c"})
	kind(t, err, errs.Unavailable)
	_, err = k.comments.Update(bob, parse(t, `{}`), store.UpdateOptions{UUID: "c"})
	kind(t, err, errs.Denied)
	kind(t, k.comments.Delete(bob, "c", 0), errs.Unavailable)
	_, err = k.comments.Explain(bob, policy.Get, "c", nil)
	kind(t, err, errs.Unavailable)
	if err := k.comments.Delete(ann, "c", 0); err != nil {
		t.Error(err)
	}
}

// Rules see the whole object, private fields included, as they do of their own; of users they see what they see of the
// caller.
func TestRulesSeeLinkedObjectsAsStored(t *testing.T) {
	k := newKitchen(t, store.Options{})
	save(t, k.users, "ada", `{"name":"Ada","password":"hash","_admin":true}`)
	save(t, k.users, "eve", `{"name":"Eve","admin":true}`)
	for rule, want := range map[string]bool{
		"linked.recipe.secret == 7": true, `linked.user.name == "Ada"`: true, "linked.user.admin": true,
		`has(linked.user.password)`: false, `has(linked.user._admin)`: false,
	} {
		s := k.comments.WithOptions(func(o *store.Options) { o.Policy = k.rules(t, policy.Rules{Create: rule}) })
		_, err := s.Save(as(t.Context(), "ann"), parse(t, `{"recipe":"open","user":"ada"}`), "")
		if (err == nil) != want {
			t.Error(rule, err)
		}
	}
	s := k.comments.WithOptions(func(o *store.Options) {
		o.Policy = k.rules(t, policy.Rules{
			Create: `linked.user.admin == true && linked.recipe.secret == 8`, Update: "linked.user.name == 'Eve'",
		})
	})
	_, err := s.Save(as(t.Context(), "ann"), parse(t, `{"user":"eve","recipe":"open"}`), "")
	kind(t, err, errs.Denied)
	e, err := s.Explain(as(t.Context(), "ann"), policy.Create, "", parse(t, `{"user":"ada","recipe":"open"}`))
	if want := "[{linked.recipe secret  true} {linked.recipe uuid \"open\" false} {linked.user admin true false} " +
		"{linked.user uuid \"ada\" false}]"; err != nil || e.Allowed || fmt.Sprint(e.Values) != want {
		t.Errorf("%+v, %v", e, err)
	}
	save(t, k.comments, "c", `{"user":"ada"}`)
	e, err = s.Explain(as(t.Context(), "ann"), policy.Update, "c", parse(t, `{"user":"eve"}`))
	if err != nil || !e.Allowed || !strings.Contains(fmt.Sprint(e.Values), `{linked.user uuid "eve" false}`) {
		t.Errorf("%+v, %v", e, err)
	}
}

// A page of expansions ends with a cursor where reading linked objects has cost what a request may.
func TestExpansionsReadLinkedObjectsWithinTheBudget(t *testing.T) {
	k := newKitchen(t, store.Options{Policy: publishedRules(t), ClientUUIDs: true})
	likes, _ := open(t, store.Options{Name: "Likes", Indexes: []query.Index{query.NewIndex([]string{"n"})}})
	// Of the recipes 20 are kept, and 10 are read for each of their comments.
	const n, large = 400, 30
	for i := range large {
		save(t, k.recipes, fmt.Sprint("r", i),
			fmt.Sprintf(`{"published":%t,"text":"%s"}`, i%2 == 0, strings.Repeat("x", 200<<10)))
	}
	for i := range n {
		save(t, k.comments, fmt.Sprint("c", i), fmt.Sprintf(`{"recipe":"r%d"}`, i%large))
		save(t, likes, fmt.Sprint("l", i), fmt.Sprintf(`{"comment":"c%d","n":%d}`, i, i))
	}
	k.backend.reads["Recipes"].Store(0)
	call := store.Call{
		Client: true, User: object.Object{"uuid": []byte(`"ann"`)}, RuleBudget: policy.NewBudget(),
	}
	list, err := likes.List(store.WithCall(t.Context(), call), store.ListOptions{
		Sort: "n", Limit: n, Expand: expansions(t, "comment", map[string]*store.Store{"comment": k.comments}),
	})
	reads := k.backend.reads["Recipes"].Load()
	if err != nil || list.Next == "" || len(list.Objects) == 0 || len(list.Objects) >= n || reads >= n {
		t.Fatalf("%d objects, cursor %q, %d reads, %v", len(list.Objects), list.Next, reads, err)
	}
	for i, o := range list.Objects {
		if strings.Contains(string(o.Body), "_expanded\":{\"comment") != (i%2 == 0) {
			t.Fatalf("%d: %s", i, o.Body)
		}
	}
}

// Gets follow the parent at once. Lists follow the copy of its value, once a worker has written that.
func TestListsFollowTheCopyOfALinkedValue(t *testing.T) {
	k := newKitchen(t, store.Options{
		Copies: []store.Copy{
			{Field: "recipePublished", Reference: "recipe", Source: "Recipes", From: "published"},
		},
		Policy: compile(t, policy.Rules{
			Create: "linked.recipe.published", Get: "linked.recipe.published", List: "object.recipePublished == true",
			References: commentReferences,
		}),
		Indexes: []query.Index{query.NewIndex([]string{"recipePublished"})}, ClientUUIDs: true,
	})
	ctx := as(t.Context(), "ann")
	if _, err := k.comments.Save(ctx, parse(t, `{"recipe":"open"}`), "c"); err != nil {
		t.Fatal(err)
	}
	list := func() int {
		page, err := k.comments.List(as(t.Context(), "ann"), store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Objects)
	}
	if got := list(); got != 1 {
		t.Errorf("%d objects", got)
	}
	k.set(t, "open", `{"published":false}`)
	_, err := k.comments.Get(as(t.Context(), "ann"), "c")
	kind(t, err, errs.Denied)
	if got := list(); got != 1 {
		t.Errorf("%d objects before the worker", got)
	}
	base, err := k.comments.Get(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	if wrote, err := store.NewWorker(k.comments).Recopy(t.Context(), base); !wrote || err != nil {
		t.Fatal(wrote, err)
	}
	if got := list(); got != 0 {
		t.Errorf("%d objects after the worker", got)
	}
}

// A required reference to nothing is refused alike whether the rule needs the object or not. Who may not write whatever
// it is, is denied.
func TestLinkedObjectsOfRequiredReferences(t *testing.T) {
	k := newKitchen(t, store.Options{
		Policy: compile(t, policy.Rules{
			Create: "user.uuid == 'bob' || user.uuid == 'ann' && linked.recipe.published", References: commentReferences,
		}),
		References: []store.Reference{{Field: "recipe", Target: "Recipes", Required: true}},
	})
	for user, want := range map[string]errs.Kind{"ann": errs.Invalid, "bob": errs.Invalid, "carl": errs.Denied} {
		_, err := k.comments.Save(as(t.Context(), user), parse(t, `{"recipe":"gone"}`), "")
		kind(t, err, want)
	}
	if _, err := k.comments.Save(as(t.Context(), "ann"), parse(t, `{"recipe":"open"}`), ""); err != nil {
		t.Error(err)
	}
}
