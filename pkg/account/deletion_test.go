package account_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/config"
	"belfry/listeners/cascade"
	"belfry/pkg/account"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

const deletionGrace = 14 * 24 * time.Hour

// deletable lets users delete their accounts.
func deletable(o *account.Options) { o.Deletion = &config.Deletion{Grace: deletionGrace} }

// plan plans the deletion of a user and returns the session that continues.
func (w *fixture) plan(in sessions.Issued) sessions.Issued {
	w.Helper()
	plan, next, err := w.Deletion.Plan(w.Context(), password, with(in))
	w.must(err)
	if want := w.clock.Now().Add(deletionGrace); !strings.HasPrefix(plan.Deleted, want.Format("2006-01-02T15:04:05.")) {
		w.Fatalf("planned for %s, want %s", plan.Deleted, want)
	}
	if next.Token == "" || next.Token == in.Token || !w.valid(next.Token) {
		w.Fatal("the session does not continue")
	}
	return next
}

// due deletes the users whose time has come, and fails unless there are as many.
func (w *fixture) due(want int) {
	w.Helper()
	n, err := w.Deletion.DeleteDue(w.Context(), 100)
	w.must(err)
	if n != want {
		w.Fatalf("%d users were deleted, want %d", n, want)
	}
}

// authEvents returns what the events of a name say.
func (w *fixture) authEvents(name event.Name) (all []event.AuthDetails) {
	w.Helper()
	for _, e := range w.recorder.of(name, "Users") {
		var d event.AuthDetails
		w.must(json.Unmarshal(e.Auth, &d))
		all = append(all, d)
	}
	return all
}

func TestADeletionIsPlannedAndTakenBack(t *testing.T) {
	w := newFixture(t, deletable)
	in := w.register(ada, password)
	bob := w.register("bob@example.com", password)
	second := w.mustLogin(ada, password, in.User.UUID)
	_, key := w.key(in, keys.New{Name: "deploy"})
	if _, err := w.Deletion.Planned(&in.Session); errs.KindOf(err) != errs.NotFound {
		t.Error("there is a plan", err)
	}
	w.wantKind(w.Deletion.Undo(t.Context(), &in.Session), errs.NotFound)

	next := w.plan(in)
	for what, token := range map[string]string{"the session": in.Token, "another session": second.Token,
		"the API key": key} {
		if w.valid(token) {
			t.Errorf("%s continues", what)
		}
	}
	if !w.valid(bob.Token) {
		t.Error("the session of another user has ended")
	}
	planned := w.authEvents(event.AuthDeletionPlanned)
	if len(planned) != 1 || planned[0].Due == "" || planned[0].Session != in.ID {
		t.Errorf("events %+v", planned)
	}
	session, err := w.Sessions.Authenticate(t.Context(), next.Token)
	w.must(err)
	plan, err := w.Deletion.Planned(session)
	w.must(err)
	if plan.Deleted != planned[0].Due {
		t.Error(plan)
	}
	seen, err := w.Admin.Account(t.Context(), session.User.Stored)
	w.must(err)
	if seen.Deletion == nil || *seen.Deletion != plan || strings.Contains(string(seen.User), "_delet") {
		t.Errorf("admins see %+v of %s", seen.Deletion, seen.User)
	}
	// To plan it again changes nothing.
	w.clock.advance(time.Minute)
	again, none, err := w.Deletion.Plan(t.Context(), password, sessions.Client{Session: session})
	w.must(err)
	if again != plan || none.Token != "" || !w.valid(next.Token) {
		t.Error("the plan has changed", again, plan)
	}
	// No program gets access meanwhile.
	_, _, err = w.Keys.Create(t.Context(), keys.New{Name: "late"}, password, with(next))
	w.wantKind(err, errs.Conflict)
	_, _, err = w.Admin.IssueKey(t.Context(), session.User.Stored, keys.New{Name: "late"})
	w.wantKind(err, errs.Conflict)

	// The user logs in as ever.
	w.clock.advance(deletionGrace - 2*time.Minute)
	w.due(0)
	later := w.mustLogin(ada, password, in.User.UUID)
	w.must(w.Deletion.Undo(t.Context(), &later.Session))
	if undone := w.authEvents(event.AuthDeletionUndone); len(undone) != 1 || undone[0].Session != later.ID {
		t.Errorf("events %+v", undone)
	}
	w.clock.advance(deletionGrace)
	w.due(0)
	w.mustLogin(ada, password, in.User.UUID)
	if w.record("Users", in.User.UUID)["_deleteAt"] != nil {
		t.Error("the plan is there")
	}
}

func TestAPlannedDeletionIsExecuted(t *testing.T) {
	w := newFixture(t, deletable)
	in, bob := w.register(ada, password), w.register("bob@example.com", password)
	next := w.plan(in)
	w.clock.advance(deletionGrace - time.Second)
	w.due(0)
	late := w.mustLogin(ada, password, in.User.UUID)
	w.clock.advance(time.Second)

	// Its time has passed: nobody takes it back any more.
	if w.valid(next.Token) || w.valid(late.Token) {
		t.Error("a session continues")
	}
	w.wantKind(w.Deletion.Undo(t.Context(), &late.Session), errs.Unauthenticated)
	_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
	if !errors.Is(err, sessions.ErrDisabled) || errs.KindOf(err) != errs.Denied {
		t.Error("login:", err)
	}
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, "another password"), from)
	w.wantKind(err, errs.Exists)
	w.due(1)
	w.due(0)
	w.wantKind(w.Deletion.Undo(t.Context(), &late.Session), errs.Unauthenticated)
	if w.record("Users", in.User.UUID) != nil || w.record("Users", bob.User.UUID) == nil {
		t.Error("the wrong user was deleted")
	}
	deletions := w.recorder.of(event.StoreDeleted, "Users")
	if len(deletions) != 1 || deletions[0].Actor == nil || *deletions[0].Actor != in.User.UUID {
		t.Errorf("%+v", deletions)
	}
	// The address is free once the cascade has deleted the ident.
	w.cascade()
	if n := len(w.objects("Idents")); n != 1 {
		t.Errorf("%d idents", n)
	}
	again := w.register(ada, "another password")
	if again.User.UUID == in.User.UUID {
		t.Error("the user has the uuid of the one who was deleted")
	}
	w.clock.advance(2 * deletionGrace)
	w.due(0)
}

// A cascade that ends in between continues with the next delivery of the event.
func TestTheCascadeOfADeletionContinues(t *testing.T) {
	w := newFixture(t, deletable)
	in := w.register(ada, password)
	w.plan(in)
	w.clock.advance(deletionGrace)
	w.due(1)
	w.backend.onStep(failWrites("Sessions", errs.New(errs.Unavailable, "crashed")))
	worker := cascade.NewWorker(w.set, cascade.Options{})
	deleted := w.recorder.of(event.StoreDeleted, "Users")[0]
	if err := worker.Handle(t.Context(), deleted); err == nil {
		t.Fatal("the cascade does not fail")
	}
	w.backend.onStep(nil)
	if len(w.objects("Idents"))+len(w.objects("Sessions")) == 0 {
		t.Fatal("the cascade was complete")
	}
	w.must(worker.Handle(t.Context(), deleted))
	if n := len(w.objects("Idents")) + len(w.objects("Sessions")); n != 0 {
		t.Errorf("%d objects are left", n)
	}
}

func TestAnAccountIsDeletedAtOnce(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Deletion = &config.Deletion{} })
	in, bob := w.register(ada, password), w.register("bob@example.com", password)
	plan, next, err := w.Deletion.Plan(t.Context(), password, with(in))
	w.must(err)
	if next.Token != "" || plan.Deleted != plan.Planned || w.record("Users", in.User.UUID) != nil {
		t.Error(plan, next.Token != "")
	}
	if len(w.authEvents(event.AuthDeletionPlanned)) != 1 {
		t.Error("there is no trace")
	}
	// A crash in between: the account is closed, and deleted later.
	w.backend.onStep(func(_ context.Context, s step) error {
		if s.store == "Users" && s.write != nil && s.write.Body == nil {
			return errs.New(errs.Unavailable, "crashed")
		}
		return nil
	})
	_, _, err = w.Deletion.Plan(t.Context(), password, with(bob))
	w.wantKind(err, errs.Unavailable)
	w.backend.onStep(nil)
	if w.valid(bob.Token) {
		t.Error("the session continues")
	}
	w.due(1)
}

func TestWhoCantDeleteTheirAccount(t *testing.T) {
	for name, c := range map[string]struct {
		want   errs.Kind
		change func(*account.Options)
		before func(w *fixture, in sessions.Issued) (sessions.Client, string)
	}{
		"a wrong password": {want: errs.Denied, before: func(_ *fixture, in sessions.Issued) (sessions.Client, string) {
			return with(in), "a wrong password"
		}},
		"no password": {want: errs.Denied,
			before: func(_ *fixture, in sessions.Issued) (sessions.Client, string) { return with(in), "" }},
		"an old session": {want: errs.Unauthenticated,
			before: func(w *fixture, in sessions.Issued) (sessions.Client, string) {
				w.clock.advance(11 * time.Minute)
				return with(in), password
			}},
		"an API key": {want: errs.Denied, before: func(w *fixture, in sessions.Issued) (sessions.Client, string) {
			_, token := w.key(in, keys.New{Name: "deploy"})
			session, err := w.Sessions.Authenticate(w.Context(), token)
			w.must(err)
			w.wantKind(w.Deletion.Undo(w.Context(), session), errs.Denied)
			_, err = w.Deletion.Planned(session)
			w.wantKind(err, errs.Denied)
			return sessions.Client{Session: session}, password
		}},
		"an admin": {want: errs.Conflict, change: admins("true"),
			before: func(_ *fixture, in sessions.Issued) (sessions.Client, string) { return with(in), password }},
		"an ended session": {want: errs.Unauthenticated,
			before: func(w *fixture, in sessions.Issued) (sessions.Client, string) {
				w.must(w.Sessions.Logout(w.Context(), &in.Session))
				return with(in), password
			}},
		"a session of before a new password": {want: errs.Unauthenticated,
			before: func(w *fixture, in sessions.Issued) (sessions.Client, string) {
				_, err := w.Admin.EndSessions(w.Context(), in.User.UUID)
				w.must(err)
				return with(in), password
			}},
		"where it is off": {
			want: errs.NotFound, change: func(o *account.Options) { o.Deletion = nil },
			before: func(_ *fixture, in sessions.Issued) (sessions.Client, string) { return with(in), password },
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes := []func(*account.Options){deletable}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			w := newFixture(t, changes...)
			in := w.register(ada, password)
			client, password := c.before(w, in)
			_, _, err := w.Deletion.Plan(t.Context(), password, client)
			w.wantKind(err, c.want)
			if step := (*errs.StepUp)(nil); name == "an old session" && !errors.As(err, &step) {
				t.Error("no step:", err)
			}
			w.clock.advance(2 * deletionGrace)
			w.due(0)
			if w.record("Users", in.User.UUID) == nil || len(w.authEvents(event.AuthDeletionPlanned)) > 0 {
				t.Error("the deletion was planned")
			}
		})
	}
}

// Where the store of users lets nobody delete themselves, nobody plans that.
func TestTheRuleOfTheStoreDecidesAboutDeletions(t *testing.T) {
	for rule, want := range map[string]errs.Kind{"false": errs.Denied, "session.aal == 2": errs.Denied,
		"isOwner": errs.Internal} {
		rules, problems := policy.Compile(policy.Rules{Users: true, Owner: true, Delete: rule})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		w := newFixture(t, deletable)
		w.rules = rules
		w.Service, w.set = w.newService()
		in := w.register(ada, password)
		_, _, err := w.Deletion.Plan(t.Context(), password, with(in))
		if want == errs.Internal {
			w.must(err)
			continue
		}
		if kind := errs.KindOf(err); kind != errs.Denied && kind != errs.Unauthenticated {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// Whoever takes a deletion back while it is executed has succeeded if they get no error.
func TestADeletionAndItsUndoAtOnce(t *testing.T) {
	w := newFixture(t, deletable)
	in := w.register(ada, password)
	w.plan(in)
	other, _ := w.newService()
	w.clock.advance(deletionGrace)
	// An operator takes it back between the read of the plan and the deletion.
	w.backend.onStep(onceAt(func(s step) bool {
		return s.store == "Users" && s.write != nil && s.write.Body == nil && !s.after
	}, func() {
		_, err := other.Admin.UndoDeletionFor(t.Context(), in.User.UUID)
		w.must(err)
	}))
	w.due(0)
	w.backend.onStep(nil)
	if w.record("Users", in.User.UUID) == nil {
		t.Fatal("deleted although that was taken back")
	}
	w.mustLogin(ada, password, in.User.UUID)
	_, err := other.Admin.UndoDeletionFor(t.Context(), in.User.UUID)
	w.wantKind(err, errs.Conflict)
}

func TestTwoWorkersDeleteAtOnce(t *testing.T) {
	w := newFixture(t, deletable)
	const users = 20
	for i := range users {
		w.plan(w.register(string(rune('a'+i))+"@example.com", password))
	}
	w.clock.advance(deletionGrace)
	services := []*account.Service{w.Service}
	for range 3 {
		s, _ := w.newService()
		services = append(services, s)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for _, s := range services {
		all.Go(func() {
			n, err := s.Deletion.DeleteDue(t.Context(), 100)
			w.allowKinds(err)
			mu.Lock()
			defer mu.Unlock()
			total += n
		})
	}
	all.Wait()
	if deleted := len(w.recorder.of(event.StoreDeleted, "Users")); deleted != users || total != users ||
		len(w.objects("Users")) != 0 {
		t.Errorf("%d of %d users were deleted, by %d reports", deleted, users, total)
	}
}

// A backup that is restored has plans that may have been taken back since: nobody is deleted without notice.
func TestAnOverdueDeletionIsDeferredOnce(t *testing.T) {
	w := newFixture(t, deletable)
	in := w.register(ada, password)
	w.plan(in)
	w.clock.advance(deletionGrace + 25*time.Hour)
	w.due(0)
	planned := w.authEvents(event.AuthDeletionPlanned)
	if len(planned) != 2 || planned[1].Reason != "overdue" || planned[1].Due <= planned[0].Due {
		t.Fatalf("events %+v", planned)
	}
	if !strings.Contains(w.log.String(), "overdue") {
		t.Error("nothing is logged")
	}
	in = w.mustLogin(ada, password, in.User.UUID) // the account is open again
	if plan, err := w.Deletion.Planned(&in.Session); err != nil || plan.Deleted != planned[1].Due {
		t.Error(plan, err)
	}
	w.due(0)
	w.clock.advance(deletionGrace + 25*time.Hour)
	w.due(1)
}

func TestAnAdminIsNotDeletedByAPlan(t *testing.T) {
	w := newFixture(t, deletable, admins(defaultAdmins))
	in := w.register(ada, password)
	w.plan(in)
	_, err := w.Admin.SetAdmin(t.Context(), in.User.UUID, true)
	w.must(err)
	w.clock.advance(deletionGrace)
	w.due(0)
	if undone := w.authEvents(event.AuthDeletionUndone); len(undone) != 1 || undone[0].Reason == "" {
		t.Errorf("events %+v", undone)
	}
	w.mustLogin(ada, password, in.User.UUID)
}

// A disabled user does not become another one by the plan, nor does the plan end.
func TestADisabledUserIsDeletedAsPlanned(t *testing.T) {
	w := newFixture(t, deletable)
	in := w.register(ada, password)
	next := w.plan(in)
	_, err := w.Admin.SetDisabled(t.Context(), in.User.UUID, true)
	w.must(err)
	w.wantKind(w.Deletion.Undo(t.Context(), &next.Session), errs.Unauthenticated)
	_, err = w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	w.clock.advance(deletionGrace)
	w.due(1)
}

// Users whom objects name, by a reference that restricts deletions, can't plan their deletion; one that is due waits.
func TestObjectsRestrictTheDeletionOfAnAccount(t *testing.T) {
	w := newFixture(t, deletable)
	posts, err := store.Open(t.Context(), w.backend, store.Options{
		Name: "Posts", Now: w.clock.Now,
		References: []store.Reference{{Field: "author", Target: "Users", Indexed: true, Counted: true,
			OnDelete: store.OnDeleteRestrict}},
	})
	w.must(err)
	all := []*store.Store{posts}
	for _, s := range w.set.Stores() {
		all = append(all, s)
	}
	store.NewSet(all, nil)
	in, other := w.register(ada, password), w.register("bob@example.com", password)
	save := func(user sessions.Issued) {
		_, err := posts.Save(t.Context(), object.Object{"author": object.AppendString(nil, user.User.UUID)}, "")
		w.must(err)
	}
	save(in)
	_, _, err = w.Deletion.Plan(t.Context(), password, with(in))
	w.wantKind(err, errs.Conflict)
	if !strings.Contains(err.Error(), "1 object of Posts names it") {
		t.Errorf("%v does not count the posts", err)
	}
	for o, err := range posts.All(t.Context(), 10) {
		w.must(err)
		w.must(posts.Delete(t.Context(), o.UUID, 0))
	}
	w.plan(in)
	w.plan(other)
	save(in) // which the plan did not see
	w.clock.advance(deletionGrace)
	w.due(1)
	if exists, err := w.set.Store("Users").Exists(t.Context(), in.User.UUID); err != nil || !exists {
		t.Errorf("the user whom a post names is deleted: %v", err)
	}
}
