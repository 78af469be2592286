package account_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/flow/firstadmin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// withoutEmail has no login by e-mail configured.
func withoutEmail(o *account.Options) { o.Email = nil }

// offer returns the token of a link for the first admin; "" for none.
func (w *fixture) offer(s *account.Service) string {
	w.Helper()
	token, expires, err := s.FirstAdmin.Offer(w.Context())
	w.must(err)
	if token != "" && !expires.Equal(w.clock.Now().Add(firstadmin.TTL)) {
		w.Errorf("the link expires at %s", expires)
	}
	return token
}

func TestTheFirstAdminIsMadeByALink(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins), withoutEmail)
	token := w.offer(w.Service)
	if len(token) != 43 {
		t.Fatalf("a token of %d characters", len(token))
	}
	w.must(w.FirstAdmin.Check(t.Context(), token, from))
	w.must(w.FirstAdmin.Check(t.Context(), token, from)) // does not use it
	if w.recorder.raw.Len() > 0 {
		t.Errorf("a start is an event: %s", w.recorder.raw.String())
	}
	in, err := w.FirstAdmin.Create(t.Context(), token, credentials("Ada@example.com", password), from)
	w.must(err)
	if !w.isAdmin(in.Token) {
		t.Error("the user is no admin")
	}
	events := w.recorder.of(event.Register, "Users")
	if len(events) != 1 || events[0].Actor == nil || *events[0].Actor != in.User.UUID ||
		events[0].Origin != event.OriginAuth {
		t.Errorf("events: %+v", events)
	}

	// Used, for whomever, it is of no use, and no other is offered.
	_, err = w.FirstAdmin.Create(t.Context(), token, credentials("bob@example.com", password), from)
	w.wantKind(err, errs.Denied)
	w.wantKind(w.FirstAdmin.Check(t.Context(), token, from), errs.Denied)
	if w.offer(w.Service) != "" {
		t.Error("a link is offered although there is an admin")
	}
	if n := len(w.objects("Users")); n != 1 {
		t.Errorf("%d users", n)
	}
	all := w.recorder.raw.String() + w.log.String()
	for _, o := range w.objects("Tokens") {
		all += string(o.Body)
	}
	if strings.Contains(all, token) || strings.Contains(all, password) {
		t.Error("a secret is in an event, the log or the store")
	}

	// They log in by their password, which nobody else can without login by e-mail.
	session, err := w.Login.LoginAdmin(t.Context(), credentials(ada, password), from)
	w.must(err)
	if !w.isAdmin(session.Token) {
		t.Error("the login is of somebody else")
	}
	_, err = w.Admin.CreateUser(t.Context(),
		admin.NewUser{Login: "bob@example.com", Password: password, Fields: object.Object{}})
	w.must(err)
	for _, c := range []passwords.Credentials{credentials(ada, "a wrong password"),
		credentials("bob@example.com", password), credentials("eve@example.com", password)} {
		_, err := w.Login.LoginAdmin(t.Context(), c, from)
		w.wantKind(err, errs.Denied)
		if !strings.Contains(err.Error(), "the login or the password is wrong, or the user is not an admin") {
			t.Errorf("%s: %v", c.Login, err)
		}
	}
}

func TestALinkForTheFirstAdminIsOfferedOnDataWithoutUsersAlone(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	in := w.register(ada, password)
	if w.offer(w.Service) != "" {
		t.Error("a link is offered although there is a user")
	}
	w.must(w.Admin.DeleteUser(t.Context(), in.User.UUID))
	if w.offer(w.Service) == "" {
		t.Error("no link is offered although there is no user any more")
	}
	for _, rule := range []string{"false", `user.role == "operator"`, `user.admin == true && user.role == "operator"`} {
		if w := newFixture(t, admins(rule)); w.offer(w.Service) != "" {
			t.Errorf("%s: a link is offered whose user is no admin", rule)
		}
	}
	if w := newFixture(t); w.offer(w.Service) != "" {
		t.Error("without a rule, nobody is an admin, and a link is offered")
	}
}

func TestALinkForTheFirstAdminIsNotGuessedNorUsedLate(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins), limits(3, 0))
	token := w.offer(w.Service)
	w.clock.advance(firstadmin.TTL / 2)
	later := w.offer(w.Service) // as after a restart: the first link is valid still
	for range 10 {
		w.must(w.FirstAdmin.Check(t.Context(), token, from))
		w.must(w.FirstAdmin.Check(t.Context(), later, from))
	}
	w.clock.advance(firstadmin.TTL / 2)
	w.wantKind(w.FirstAdmin.Check(t.Context(), token, from), errs.Denied)
	_, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	_, err = w.FirstAdmin.Create(t.Context(), "", credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	_, err = w.FirstAdmin.Create(t.Context(), later, credentials(ada, password), from)
	w.wantKind(err, errs.Limited)
	w.clock.advance(time.Minute)
	w.must(w.FirstAdmin.Check(t.Context(), later, from))
	if n := len(w.objects("Users")); n != 0 {
		t.Errorf("%d users", n)
	}

	// A token of another purpose is no link.
	w = newFixture(t, admins(defaultAdmins), validatedFirst)
	w.offer(w.Service)
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.must(err)
	w.wantKind(w.FirstAdmin.Check(t.Context(), w.lastMail(ada).token, from), errs.Denied)
}

func TestOfConcurrentUsesOfLinksOneMakesTheFirstAdmin(t *testing.T) {
	for range 20 {
		w := newFixture(t, admins(defaultAdmins))
		services := w.twoServices()
		tokens := [2]string{w.offer(services[0]), w.offer(services[1])}
		logins := [...]string{ada, "bob@example.com", "carla@example.com", "dora@example.com"}
		var made atomic.Int32
		concurrently(services, len(logins), func(i int, s *account.Service) {
			_, err := s.FirstAdmin.Create(t.Context(), tokens[(i/2)%2], credentials(logins[i], password), from)
			w.allowKinds(err, errs.Denied)
			if err == nil {
				made.Add(1)
			}
		})
		if n := len(w.objects("Users")); made.Load() != 1 || n != 1 {
			t.Fatalf("%d links were used, %d users", made.Load(), n)
		}
	}
}

func TestAnAdminWhoIsMadeMeanwhileEndsTheLinks(t *testing.T) {
	// Each is done by another process.
	byCommand := func(w *fixture) {
		other, _ := w.newService()
		_, err := other.Admin.CreateUser(w.Context(),
			admin.NewUser{Login: "root@example.com", Fields: object.Object{}, Admin: true})
		w.must(err)
	}
	appointed := func(w *fixture) {
		other, _ := w.newService()
		user, err := other.Admin.CreateUser(w.Context(),
			admin.NewUser{Login: "root@example.com", Fields: object.Object{}})
		w.must(err)
		_, err = other.Admin.SetAdmin(w.Context(), user.UUID, true)
		w.must(err)
	}
	machine := func(w *fixture) {
		other, _ := w.newService()
		_, err := other.Admin.CreateUser(w.Context(),
			admin.NewUser{Fields: object.Object{}, Admin: true, Machine: true})
		w.must(err)
	}
	inEarlierRelease := func(w *fixture) { // which does not know of links
		o, err := object.Parse([]byte(`{"admin":true}`))
		w.must(err)
		o.Set("_admin", true)
		_, set := w.newService()
		_, err = set.Store("Users").Save(w.Context(), o, "")
		w.must(err)
	}
	for name, make := range map[string]func(*fixture){
		"created by a command": byCommand, "a user is made an admin": appointed, "a machine": machine,
		"by an earlier release": inEarlierRelease,
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, admins(defaultAdmins))
			token := w.offer(w.Service)
			make(w)
			w.wantKind(w.FirstAdmin.Check(t.Context(), token, from), errs.Denied)
			_, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
			w.wantKind(err, errs.Denied)
			if n := len(w.objects("Users")); n != 1 {
				t.Errorf("%d users", n)
			}

			// While the link is used: before and after the write by which it is.
			for _, after := range []bool{false, true} {
				w := newFixture(t, admins(defaultAdmins))
				token := w.offer(w.Service)
				w.backend.onStep(onceAt(func(s step) bool {
					return s.store == "Tokens" && s.write != nil && s.after == after
				}, func() { make(w) }))
				_, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
				w.wantKind(err, errs.Denied)
				if n := len(w.objects("Users")); n != 1 {
					t.Errorf("%d users", n)
				}
			}

			// While a link is made.
			w = newFixture(t, admins(defaultAdmins))
			w.backend.onStep(onceAt(func(s step) bool {
				return s.store == "Tokens" && s.write != nil &&
					!s.after
			}, func() { make(w) }))
			if w.offer(w.Service) != "" {
				t.Error("a link is offered although there is an admin")
			}
		})
	}
}

// An admin who is being made is the first one already.
func TestALinkIsNotUsedWhileAnAdminIsMade(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	token := w.offer(w.Service)
	other, _ := w.newService()
	w.backend.onStep(onceAt(func(s step) bool { return s.store == "Users" && s.write != nil && !s.after }, func() {
		_, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
		w.wantKind(err, errs.Denied)
	}))
	_, err := other.Admin.CreateUser(t.Context(),
		admin.NewUser{Login: "root@example.com", Fields: object.Object{}, Admin: true})
	w.must(err)
	if n := len(w.objects("Users")); n != 1 {
		t.Errorf("%d users", n)
	}
}

// A stranger who registers before the first admin does must not keep them from it.
func TestAUserWhoIsNoAdminDoesNotEndTheLinks(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	token := w.offer(w.Service)
	w.register("eve@example.com", password)
	in, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
	w.must(err)
	if !w.isAdmin(in.Token) {
		t.Error("no admin")
	}
}

func TestALinkIsValidUntilItHasMadeAnAdmin(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	token := w.offer(w.Service)
	w.clock.advance(time.Minute)
	w.register("eve@example.com", password)
	for _, c := range []passwords.Credentials{credentials("no address", password), credentials(ada, "short"),
		credentials("", password), credentials(ada, "")} {
		_, err := w.FirstAdmin.Create(t.Context(), token, c, from)
		w.wantKind(err, errs.Invalid)
	}
	_, err := w.FirstAdmin.Create(t.Context(), token, credentials("eve@example.com", password), from)
	w.wantKind(err, errs.Exists)
	broken := errors.New("the disk is broken")
	for _, store := range []string{"Idents", "Users"} {
		w.backend.onStep(failWrites(store, broken))
		_, err = w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	w.backend.onStep(nil)
	w.clock.advance(firstadmin.TTL - 2*time.Minute) // no failure has extended it
	w.must(w.FirstAdmin.Check(t.Context(), token, from))
	w.clock.advance(59 * time.Second)
	in, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
	w.must(err)
	if !w.isAdmin(in.Token) {
		t.Error("no admin")
	}

	// A user who was written although the reply was lost is the first admin.
	w = newFixture(t, admins(defaultAdmins))
	token = w.offer(w.Service)
	w.backend.onStep(func(_ context.Context, s step) error {
		if s.store == "Users" && s.write != nil && s.after {
			return broken
		}
		return nil
	})
	_, err = w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), from)
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.backend.onStep(nil)
	_, err = w.FirstAdmin.Create(t.Context(), token, credentials("bob@example.com", password), from)
	w.wantKind(err, errs.Denied)
}

// A link that was used is known for ten minutes, unless what it was used for has failed.
func TestAUsedLinkForTheFirstAdminIsRemembered(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	token, c := w.offer(w.Service), known()
	broken := errors.New("the disk is broken")
	w.backend.onStep(failWrites("Users", broken))
	if _, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), c); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.backend.onStep(nil)
	w.must(w.FirstAdmin.Check(t.Context(), token, known()))
	_, err := w.FirstAdmin.Create(t.Context(), token, credentials(ada, password), c)
	w.must(err)
	for _, s := range w.twoServices() { // any process
		w.wantRepeated(s.FirstAdmin.Check(t.Context(), token, c), record.ActFirstAdmin, true)
		w.wantRepeated(s.FirstAdmin.Check(t.Context(), token, known()), record.ActFirstAdmin, false)
		_, err := s.FirstAdmin.Create(t.Context(), token, credentials("bob@example.com", password), c)
		w.wantRepeated(err, record.ActFirstAdmin, true)
	}
	w.wantPlain(w.FirstAdmin.Check(t.Context(), token+"A", c))
	w.clock.advance(once.UsedTTL)
	w.wantPlain(w.FirstAdmin.Check(t.Context(), token, c))
	if n := len(w.objects("Users")); n != 1 {
		t.Errorf("%d users", n)
	}
}

// A link that is sent twice at once makes one admin, and the second knows of it, even while the first is in progress.
func TestALinkForTheFirstAdminIsSentTwiceAtOnce(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	token, c := w.offer(w.Service), known()
	services := w.twoServices()
	second := make(chan error, 1)
	w.backend.onStep(onceAt(func(s step) bool { return s.store == "Users" && s.write != nil && !s.after }, func() {
		go func() {
			_, err := services[1].FirstAdmin.Create(t.Context(), token, credentials(ada, password), c)
			second <- err
		}()
	}))
	_, err := services[0].FirstAdmin.Create(t.Context(), token, credentials(ada, password), c)
	w.must(err)
	w.wantRepeated(<-second, record.ActFirstAdmin, true)
}
