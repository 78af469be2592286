package account_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// admins sets the rule of admins, by default that of the configuration.
func admins(rule string) func(*account.Options) {
	return func(o *account.Options) {
		compiled, problems := policy.CompileUserRule(rule)
		if len(problems) > 0 {
			panic(problems)
		}
		o.Admins = compiled
	}
}

const defaultAdmins = "user.admin == true"

// isAdmin authenticates a token and asks whether its user is an admin.
func (w *fixture) isAdmin(token string) bool {
	w.Helper()
	session, err := w.Sessions.Authenticate(w.Context(), token)
	w.must(err)
	if session == nil {
		w.Fatal("the token is not valid")
	}
	return w.Sessions.IsAdmin(w.Context(), session)
}

func TestAnAdminIsWhomTheRuleSays(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	in := w.register(ada, password)
	if w.isAdmin(in.Token) || w.Sessions.IsAdmin(t.Context(), nil) {
		t.Error("everybody is an admin")
	}
	for range 2 { // the second time nothing is written
		stored, err := w.Admin.SetAdmin(t.Context(), in.User.UUID, true)
		w.must(err)
		if !w.isAdmin(in.Token) || string(object.Field(stored.Body, "admin")) != "true" {
			t.Errorf("no admin: %s", stored.Body)
		}
	}
	if n := len(w.recorder.of(event.StoreUpdated, "Users")); n != 1 {
		t.Errorf("%d events", n)
	}
	stored, err := w.Admin.SetAdmin(t.Context(), in.User.UUID, false)
	w.must(err)
	if w.isAdmin(in.Token) || object.Field(stored.Body, "admin") != nil || object.Field(stored.Body, "_admin") != nil {
		t.Errorf("still an admin: %s", stored.Body)
	}
	_, err = w.Admin.SetAdmin(t.Context(), "none", true)
	w.wantKind(err, errs.NotFound)

	w = newFixture(t, admins(`user.role == "operator"`))
	c := credentials(ada, password)
	c.Fields = object.Object{"role": []byte(`"operator"`)}
	in, _, err = w.Registration.Register(t.Context(), c, from)
	w.must(err)
	if !w.isAdmin(in.Token) {
		t.Error("the rule of the configuration is not asked")
	}
	if w = newFixture(t); w.isAdmin(w.register(ada, password).Token) {
		t.Error("without a rule somebody is an admin")
	}
}

// granting is an interceptor that tries to make everybody an admin.
type granting struct{}

func (granting) Intercept(context.Context, store.InterceptRequest) (object.Object, error) {
	return object.Parse([]byte(`{"admin":true,"_admin":true,"disabled":true,"_disabled":true,"name":"amended"}`))
}

func TestOnlyAdminsMakeAdminsAndDisableUsers(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins), github, func(o *account.Options) { o.Interceptor = granting{} })
	c := credentials(ada, password)
	var err error
	c.Fields, err = object.Parse([]byte(`{"admin":true,"_admin":true,"disabled":true,"_disabled":true}`))
	w.must(err)
	in, _, err := w.Registration.Register(t.Context(), c, from)
	w.must(err)
	byProvider, err := w.loginByProvider("1815", from)
	w.must(err)
	fields := c.Fields
	users := w.set.Store("Users")
	intercepted := users.WithOptions(func(o *store.Options) { o.Interceptor = granting{} })
	check := func(how string, in sessions.Issued) {
		t.Helper()
		session, err := w.Sessions.Authenticate(t.Context(), in.Token)
		w.must(err)
		if session == nil {
			t.Fatalf("%s: the user is disabled", how)
		}
		stored := w.record("Users", in.User.UUID)
		for _, name := range []string{"admin", "_admin", "disabled", "_disabled"} {
			if stored[name] != nil || session.Visible[name] != nil {
				t.Errorf("%s: set %s: %s", how, name, stored.Encode())
			}
		}
	}
	check("registration", in)
	check("a provider's profile and an interceptor", byProvider)
	if name, _ := w.record("Users", byProvider.User.UUID).Text("name"); name != "amended" {
		t.Error("the interceptor was not asked")
	}
	for how, call := range map[string]store.Call{
		"a client":             {Client: true, Origin: event.OriginHTTP, User: in.Visible},
		"a program on the bus": {Client: true, Trusted: true, Origin: event.OriginBus},
	} {
		ctx := store.WithCall(t.Context(), call)
		for _, s := range []*store.Store{users, intercepted} {
			for _, patch := range []bool{false, true} {
				_, err := s.Update(ctx, fields, store.UpdateOptions{UUID: in.User.UUID, Patch: patch})
				w.must(err)
				check(how, in)
			}
			created, err := s.Save(ctx, fields, "")
			w.must(err)
			if o := w.record("Users", created.UUID); o["admin"] != nil || o["_admin"] != nil || o["disabled"] != nil {
				t.Errorf("%s created %s", how, o.Encode())
			}
		}
	}

	// What was granted can't be taken away, nor given back, by who has it.
	_, err = w.Admin.SetAdmin(t.Context(), in.User.UUID, true)
	w.must(err)
	removing, err := object.Parse([]byte(`{"admin":null,"_admin":null}`))
	w.must(err)
	for _, trusted := range []bool{false, true} {
		ctx := store.WithCall(t.Context(), store.Call{Client: true, Trusted: trusted, Origin: event.OriginBus})
		_, err = users.Update(ctx, removing, store.UpdateOptions{UUID: in.User.UUID, Patch: true})
		w.must(err)
		if !w.isAdmin(in.Token) {
			t.Error("a client removed the mark of an admin")
		}
	}
}

// Before belfry reserved the names, users could set fields that are called so.
func TestFieldsOfAnEarlierReleaseGrantAndForbidNothing(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	in := w.register(ada, password)
	before, err := object.Parse([]byte(`{"admin":true,"disabled":true}`))
	w.must(err)
	_, err = w.set.Store("Users").Update(t.Context(), before, store.UpdateOptions{UUID: in.User.UUID})
	w.must(err)
	session, err := w.Sessions.Authenticate(t.Context(), in.Token)
	w.must(err)
	if session == nil || w.Sessions.IsAdmin(t.Context(), session) || session.Visible["admin"] != nil ||
		session.Visible["disabled"] != nil {
		t.Fatalf("%+v", session)
	}
	again := w.mustLogin(ada, password, in.User.UUID)
	if again.Visible["admin"] != nil {
		t.Error("a login makes an admin")
	}
	seen, err := w.Admin.Account(t.Context(), session.User.Stored)
	w.must(err)
	if seen.Admin || seen.Disabled || strings.Contains(string(seen.User), "admin") {
		t.Errorf("%+v", seen)
	}
	stored, err := w.Admin.SetDisabled(t.Context(), in.User.UUID, false)
	w.must(err)
	if object.Field(stored.Body, "disabled") != nil {
		t.Errorf("%s", stored.Body)
	}
}

func TestADisabledUserIsLoggedInNowhere(t *testing.T) {
	w := newFixture(t, github)
	in := w.register(ada, password)
	_, err := w.loginByProvider("1815", with(in))
	w.must(err)
	first := w.mustLogin(ada, password, in.User.UUID)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	mailed := w.lastMail(ada)
	mails := w.countMails(ada)
	other, _ := w.newService() // another process

	actor := "the admin"
	ctx := store.WithCall(t.Context(),
		store.Call{Origin: event.OriginHTTP, Actor: &actor, Ctx: event.Ctx{Request: "r1"}})
	_, err = w.Admin.SetDisabled(ctx, in.User.UUID, true)
	w.must(err)
	for _, token := range []string{in.Token, first.Token} {
		session, err := other.Sessions.Authenticate(t.Context(), token)
		w.must(err)
		if session != nil || w.valid(token) {
			t.Error("a session continues")
		}
	}
	events := w.recorder.of(event.StoreUpdated, "Users")
	e := events[len(events)-1]
	if e.Actor == nil || *e.Actor != actor || e.Origin != event.OriginHTTP || e.Ctx.Request != "r1" ||
		string(object.Field(e.Object, "disabled")) != "true" {
		t.Errorf("the event is %+v", e)
	}

	// Only who knows the password learns why.
	_, err = w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	if !errors.Is(err, sessions.ErrDisabled) || !strings.Contains(err.Error(), "disabled") {
		t.Error(err)
	}
	_, err = w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
	w.wantKind(err, errs.Denied)
	if errors.Is(err, sessions.ErrDisabled) || strings.Contains(err.Error(), "disabled") {
		t.Error(err)
	}
	_, err = w.loginByProvider("1815", from)
	w.wantKind(err, errs.Denied)
	if !errors.Is(err, sessions.ErrDisabled) {
		t.Error(err)
	}
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Exists)
	_, err = w.Recovery.ChangePassword(t.Context(), password, "a better password", with(first))
	w.wantKind(err, errs.Unauthenticated)

	// Recovery.
	c := credentials(ada, "a better password")
	c.Token = mailed.token
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	if w.countMails(ada) != mails {
		t.Error("a mail for a recovery is sent")
	}

	_, err = w.Admin.SetDisabled(t.Context(), in.User.UUID, false)
	w.must(err)
	if w.valid(in.Token) || w.valid(first.Token) {
		t.Error("a session of before continues")
	}
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	again := w.mustLogin(ada, password, in.User.UUID)
	if !w.valid(again.Token) || w.record("Users", in.User.UUID)["disabled"] != nil {
		t.Error("the user is not enabled")
	}
}

// A mail that was requested before is of no use once the user is disabled.
func TestARecoveryRequestedBeforeAUserIsDisabledEndsWithThem(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	_, err := w.Admin.SetDisabled(t.Context(), in.User.UUID, true)
	w.must(err)
	c := credentials(ada, "a better password")
	c.Token = w.lastMail(ada).token
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	_, err = w.Admin.SetDisabled(t.Context(), in.User.UUID, false)
	w.must(err)
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.mustLogin(ada, password, in.User.UUID)
}

// A login that has verified the password when the user is disabled starts no session that is valid.
func TestALoginDuringTheDisablingOfItsUserIsInvalid(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.Close()
	w.ObserveHashes(func(passwords.HashParams) {
		_, err := w.Admin.SetDisabled(t.Context(), in.User.UUID, true)
		w.must(err)
	})
	again, err := w.Login.Login(t.Context(), credentials(ada, password), from)
	w.allowKinds(err, errs.Denied)
	w.ObserveHashes(func(passwords.HashParams) {})
	if again.Token != "" && w.valid(again.Token) {
		t.Error("its session is valid")
	}
	_, err = w.Admin.SetDisabled(t.Context(), in.User.UUID, false)
	w.must(err)
	if again.Token != "" && w.valid(again.Token) {
		t.Error("its session is valid once the user is enabled")
	}
}

func TestAdminsCreateFindAndDeleteUsers(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	fields, err := object.Parse(
		[]byte(`{"name":"Ada","admin":true,"_admin":true,"_epoch":7,"password":"x","uuid":"chosen","idents":[1]}`))
	w.must(err)
	ctx := store.WithCall(t.Context(), store.Call{Origin: event.OriginCommand})
	user, err := w.Admin.CreateUser(ctx, admin.NewUser{Login: "ADA@example.com", Password: password, Fields: fields})
	w.must(err)
	stored := w.record("Users", user.UUID)
	if name, _ := stored.Text("name"); name != "Ada" || stored["admin"] != nil || stored["_admin"] != nil ||
		stored["_epoch"] != nil || user.UUID == "chosen" {
		t.Errorf("%s", stored.Encode())
	}
	for _, e := range append(w.recorder.of(event.Register, "Users"), w.recorder.of(event.StoreSaved, "Idents")...) {
		if e.Origin != event.OriginCommand || e.Actor != nil {
			t.Errorf("%s has origin %s, actor %v", e.Event, e.Origin, e.Actor)
		}
	}
	if n := len(w.recorder.of(event.Register, "Users")); n != 1 {
		t.Errorf("%d events Register", n)
	}
	if ident := w.record("Idents", ada+"_email"); string(ident["validated"]) != "false" {
		t.Errorf("%s", ident.Encode())
	}
	in := w.mustLogin(ada, password, user.UUID)

	_, err = w.Admin.CreateUser(ctx, admin.NewUser{Login: ada, Password: password})
	w.wantKind(err, errs.Exists)
	for _, u := range []admin.NewUser{{Login: "no address", Password: password},
		{Login: "bob@example.com", Password: "short"},
		{Login: "bob@example.com", Fields: object.Object{"x": []byte(`"bad"`)}}} {
		_, err := w.Admin.CreateUser(ctx, u)
		w.wantKind(err, errs.Invalid)
	}
	root, err := w.Admin.CreateUser(ctx,
		admin.NewUser{Login: "root@example.com", Password: password, Admin: true, Validated: true})
	w.must(err)
	if !w.isAdmin(w.mustLogin("root@example.com", password, root.UUID).Token) ||
		string(w.record("Idents", "root@example.com_email")["validated"]) != "true" {
		t.Error("no admin was created, or their address is not validated")
	}
	// Without a password there is only a recovery.
	later, err := w.Admin.CreateUser(ctx, admin.NewUser{Login: "later@example.com"})
	w.must(err)
	_, err = w.Login.Login(t.Context(), credentials("later@example.com", ""), from)
	w.wantKind(err, errs.Invalid)
	w.must(w.Recovery.Request(t.Context(), "later@example.com", from))
	c := credentials("later@example.com", password)
	c.Token = w.lastMail("later@example.com").token
	w.must(w.Recovery.Recover(t.Context(), c, from))
	w.mustLogin("later@example.com", password, later.UUID)

	for _, who := range []string{ada, "Ada@Example.com", user.UUID} {
		found, err := w.Admin.FindUser(t.Context(), who)
		w.must(err)
		if found.UUID != user.UUID {
			t.Errorf("%s is %s", who, found.UUID)
		}
	}
	for _, who := range []string{"", "none", "none@example.com", "a b", "../x", ada + "_github"} {
		_, err := w.Admin.FindUser(t.Context(), who)
		w.wantKind(err, errs.NotFound)
	}

	_, err = w.Admin.SetPassword(ctx, user.UUID, "short")
	w.wantKind(err, errs.Invalid)
	_, err = w.Admin.SetPassword(ctx, user.UUID, "a better password")
	w.must(err)
	if w.valid(in.Token) {
		t.Error("a session outlives the password")
	}
	in = w.mustLogin(ada, "a better password", user.UUID)
	w.must(w.Admin.DeleteUser(ctx, user.UUID))
	if w.valid(in.Token) {
		t.Error("a session outlives its user")
	}
	w.wantKind(w.Admin.DeleteUser(ctx, user.UUID), errs.NotFound)
	w.cascade()
	if w.record("Idents", ada+"_email") != nil {
		t.Error("the ident outlives its user")
	}
}

func TestANewPasswordEndsTheDelaysOfFailedLogins(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Limits.Account = 2 })
	in := w.register(ada, password)
	for range 2 {
		_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
		w.wantKind(err, errs.Denied)
	}
	w.Close()
	_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Limited)
	other, _ := w.newService() // another process, as a command is
	w.clock.advance(time.Millisecond)
	_, err = other.Admin.SetPassword(t.Context(), in.User.UUID, "a better password")
	w.must(err)
	w.mustLogin(ada, "a better password", in.User.UUID)
}

func TestAccountsShowNoSecrets(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins), func(o *account.Options) { o.Limits.Account = 5 })
	in := w.register(ada, password)
	w.register("bob@example.com", password)
	_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
	w.wantKind(err, errs.Denied)
	w.Close()
	var all []admin.Account
	var after []byte
	for {
		page, next, err := w.Admin.Accounts(t.Context(), after, 1)
		w.must(err)
		all = append(all, page...)
		if after = next; next == nil {
			break
		}
	}
	if len(all) != 2 {
		t.Fatalf("%d users", len(all))
	}
	details, err := w.Admin.AccountDetails(t.Context(), in.User.Stored)
	w.must(err)
	if len(details.Idents) != 1 || details.Idents[0].UUID != ada+"_email" || details.Idents[0].FailedLogins != 1 ||
		len(details.Sessions) != 1 || details.Sessions[0].Current || !details.HasPassword {
		t.Errorf("%+v", details)
	}
	text, err := json.Marshal(append(slices.Clone(all), details))
	w.must(err)
	for _, secret := range []string{"argon2id", `"password":`, "_epoch", "_hash", in.Token, in.Token[len(in.ID):]} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
}

// A schema that was made stricter since must not protect an account from admins.
func TestAUserWhomTheSchemaNoLongerAcceptsIsDisabled(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	old := w.set.Store("Users").WithOptions(func(o *store.Options) { o.Schema = nil })
	_, err := old.Update(t.Context(), object.Object{"x": []byte(`"bad"`)}, store.UpdateOptions{UUID: in.User.UUID})
	w.must(err)
	_, err = w.Admin.SetDisabled(t.Context(), in.User.UUID, true)
	w.must(err)
	if w.valid(in.Token) {
		t.Error("a session continues")
	}
	_, err = w.Admin.SetAdmin(t.Context(), in.User.UUID, true)
	w.must(err)
	_, err = w.Admin.SetPassword(t.Context(), in.User.UUID, "a better password")
	w.wantKind(err, errs.Invalid) // the schema sees whether there is a password
}
