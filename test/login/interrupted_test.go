package login

import (
	"errors"
	"testing"
	"time"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// A registration that is interrupted between its two records leaves an ident
// that does not block the identity.
func TestAnInterruptedOAuthRegistrationIsAdopted(t *testing.T) {
	for _, name := range names {
		d := newServiceFixture(t)
		d.interruptRegistration(name)
		left := d.objects(d.stores.Idents)[0]
		var in sessions.Issued
		for range 2 {
			var err error
			in, err = d.begin(name, sessions.Client{}).finish(t.Context(), d.Service, sessions.Client{})
			d.must(err)
		}
		if user, _ := left.Text("user"); in.User.UUID != user || len(d.objects(d.stores.Users)) != 1 ||
			len(d.objects(d.stores.Idents)) != 1 || d.registerEvents() != 1 {
			t.Errorf("%s: the user is %s, the ident that was left %s", name, in.User.UUID, left.Encode())
		}
	}
}

// interruptRegistration starts a registration whose user can't be written.
func (d *serviceFixture) interruptRegistration(name string) {
	d.Helper()
	v := d.begin(name, sessions.Client{})
	d.records.before("Users", func() error { return errs.New(errs.Unavailable, "no room") })
	_, err := v.finish(d.Context(), d.Service, sessions.Client{})
	d.wantKind(err, errs.Unavailable)
	if len(d.objects(d.stores.Users)) != 0 || len(d.objects(d.stores.Idents)) != 1 || d.registerEvents() != 0 {
		d.Fatalf("users %v, idents %v", d.objects(d.stores.Users), d.objects(d.stores.Idents))
	}
}

// An abandoned ident can be linked, but not while its registration may be in
// progress.
func TestAnInterruptedOAuthRegistrationCanBeLinked(t *testing.T) {
	d := newServiceFixture(t)
	d.providers.User("1")
	d.interruptRegistration("github")
	d.providers.User("2")
	me, err := d.begin("google", sessions.Client{}).finish(t.Context(), d.Service, sessions.Client{})
	d.must(err)
	d.providers.User("1")
	_, err = d.begin("github", with(me)).finish(t.Context(), d.Service, with(me))
	d.wantKind(err, errs.Conflict)
	d.advance(2 * time.Minute)
	_, err = d.begin("github", with(me)).finish(t.Context(), d.Service, with(me))
	d.must(err)
	in, err := d.begin("github", sessions.Client{}).finish(t.Context(), d.Service, sessions.Client{})
	d.must(err)
	if in.User.UUID != me.User.UUID || len(d.objects(d.stores.Users)) != 1 || len(d.objects(d.stores.Idents)) != 2 {
		t.Errorf("user %s, want %s", in.User.UUID, me.User.UUID)
	}
}

// An identity that is registered and linked concurrently belongs to the new
// user, and every user has one.
func TestConcurrentRegistrationAndLink(t *testing.T) {
	d := newServiceFixture(t)
	d.providers.User("2")
	me, err := d.begin("google", sessions.Client{}).finish(t.Context(), d.Service, sessions.Client{})
	d.must(err)
	d.providers.User("1")
	links, registers := d.begin("github", with(me)), d.begin("github", sessions.Client{})
	d.records.before("Users", func() error {
		_, err := links.finish(t.Context(), d.Service, with(me))
		if !errors.Is(err, errs.Conflict) {
			t.Errorf("linking: %v", err)
		}
		return nil
	})
	in, err := registers.finish(t.Context(), d.Service, sessions.Client{})
	d.must(err)
	if ident, _ := d.ident("1_github").Text("user"); in.User.UUID != ident || len(d.objects(d.stores.Idents)) != 2 {
		t.Errorf("user %s has registered, the ident is of %s", in.User.UUID, ident)
	}
}

// The ident of a deleted user does not block the identity until the cascade
// deletes it.
func TestADeletedUserReturnsAsANewUser(t *testing.T) {
	d := newServiceFixture(t)
	for _, name := range names {
		first, err := d.begin(name, sessions.Client{}).finish(t.Context(), d.Service, sessions.Client{})
		d.must(err)
		d.must(d.stores.Users.Delete(t.Context(), first.User.UUID, 0))
		again, err := d.begin(name, sessions.Client{}).finish(t.Context(), d.Service, sessions.Client{})
		d.must(err)
		ident, _ := d.ident("583231_" + name).Text("user")
		if again.User.UUID == first.User.UUID || ident != again.User.UUID {
			t.Errorf("%s: %s comes as %s, the ident is of %s", name, first.User.UUID, again.User.UUID, ident)
		}
		// The same for linking.
		d.must(d.stores.Users.Delete(t.Context(), again.User.UUID, 0))
		d.providers.User("other")
		me, err := d.begin("google", sessions.Client{}).finish(t.Context(), d.Service, sessions.Client{})
		d.must(err)
		d.providers.User("583231")
		_, err = d.begin(name, with(me)).finish(t.Context(), d.Service, with(me))
		d.must(err)
		if ident, _ := d.ident("583231_" + name).Text("user"); ident != me.User.UUID {
			t.Errorf("%s: the ident is of %s", name, ident)
		}
		d.must(d.stores.Users.Delete(t.Context(), me.User.UUID, 0))
		d.must(d.stores.Idents.Delete(store.WithCall(t.Context(), store.Call{}), "583231_"+name, 0))
	}
}
