package login

import (
	"errors"
	"testing"
	"time"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// A registration that breaks off between its two records leaves an ident that
// is in nobody's way.
func TestAnInterruptedOAuthRegistrationIsAdopted(t *testing.T) {
	for _, name := range names {
		d := open(t)
		d.breaks(name)
		left := d.all(d.stores.Idents)[0]
		var in auth.IssuedSession
		for range 2 {
			var err error
			in, err = d.goes(name, auth.Client{}).comes(t.Context(), d.Service, auth.Client{})
			d.must(err)
		}
		if user, _ := left.Text("user"); in.User.UUID != user || len(d.all(d.stores.Users)) != 1 || len(d.all(d.stores.Idents)) != 1 || d.registered() != 1 {
			t.Errorf("%s: the user is %s, the ident that was left %s", name, in.User.UUID, left.Encode())
		}
	}
}

// breaks begins a registration whose user can't be written.
func (d *desk) breaks(name string) {
	d.Helper()
	v := d.goes(name, auth.Client{})
	d.records.before("Users", func() error { return errs.New(errs.Unavailable, "no room") })
	_, err := v.comes(d.Context(), d.Service, auth.Client{})
	d.kind(err, errs.Unavailable)
	if len(d.all(d.stores.Users)) != 0 || len(d.all(d.stores.Idents)) != 1 || d.registered() != 0 {
		d.Fatalf("users %v, idents %v", d.all(d.stores.Users), d.all(d.stores.Idents))
	}
}

// What was left can be linked too, but not while it may be under way.
func TestAnInterruptedOAuthRegistrationCanBeLinked(t *testing.T) {
	d := open(t)
	d.providers.User("1")
	d.breaks("github")
	d.providers.User("2")
	me, err := d.goes("google", auth.Client{}).comes(t.Context(), d.Service, auth.Client{})
	d.must(err)
	d.providers.User("1")
	_, err = d.goes("github", with(me)).comes(t.Context(), d.Service, with(me))
	d.kind(err, errs.Conflict)
	d.pass(time.Hour)
	_, err = d.goes("github", with(me)).comes(t.Context(), d.Service, with(me))
	d.must(err)
	in, err := d.goes("github", auth.Client{}).comes(t.Context(), d.Service, auth.Client{})
	d.must(err)
	if in.User.UUID != me.User.UUID || len(d.all(d.stores.Users)) != 1 || len(d.all(d.stores.Idents)) != 2 {
		t.Errorf("user %s, want %s", in.User.UUID, me.User.UUID)
	}
}

// Somebody registers with a way in that another links at that moment: it is
// the newcomer's, who has begun, and every user has one.
func TestConcurrentRegistrationAndLink(t *testing.T) {
	d := open(t)
	d.providers.User("2")
	me, err := d.goes("google", auth.Client{}).comes(t.Context(), d.Service, auth.Client{})
	d.must(err)
	d.providers.User("1")
	links, registers := d.goes("github", with(me)), d.goes("github", auth.Client{})
	d.records.before("Users", func() error {
		_, err := links.comes(t.Context(), d.Service, with(me))
		if !errors.Is(err, errs.Conflict) {
			t.Errorf("linking: %v", err)
		}
		return nil
	})
	in, err := registers.comes(t.Context(), d.Service, auth.Client{})
	d.must(err)
	if ident, _ := d.ident("1_github").Text("user"); in.User.UUID != ident || len(d.all(d.stores.Idents)) != 2 {
		t.Errorf("user %s has registered, the ident is of %s", in.User.UUID, ident)
	}
}

// The ident of a user who is deleted goes with the user, and is in nobody's
// way until it does.
func TestADeletedUserReturnsAsANewUser(t *testing.T) {
	d := open(t)
	for _, name := range names {
		first, err := d.goes(name, auth.Client{}).comes(t.Context(), d.Service, auth.Client{})
		d.must(err)
		d.must(d.stores.Users.Delete(t.Context(), first.User.UUID, 0))
		again, err := d.goes(name, auth.Client{}).comes(t.Context(), d.Service, auth.Client{})
		d.must(err)
		ident, _ := d.ident("583231_" + name).Text("user")
		if again.User.UUID == first.User.UUID || ident != again.User.UUID {
			t.Errorf("%s: %s comes as %s, the ident is of %s", name, first.User.UUID, again.User.UUID, ident)
		}
		// The same for who links it.
		d.must(d.stores.Users.Delete(t.Context(), again.User.UUID, 0))
		d.providers.User("other")
		me, err := d.goes("google", auth.Client{}).comes(t.Context(), d.Service, auth.Client{})
		d.must(err)
		d.providers.User("583231")
		_, err = d.goes(name, with(me)).comes(t.Context(), d.Service, with(me))
		d.must(err)
		if ident, _ := d.ident("583231_" + name).Text("user"); ident != me.User.UUID {
			t.Errorf("%s: the ident is of %s", name, ident)
		}
		d.must(d.stores.Users.Delete(t.Context(), me.User.UUID, 0))
		d.must(d.stores.Idents.Delete(store.WithCall(t.Context(), store.Call{}), "583231_"+name, 0))
	}
}
