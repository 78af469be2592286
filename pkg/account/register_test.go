package account_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// form makes credentials with more fields.
func form(t *testing.T, login, password, fields string) passwords.Credentials {
	t.Helper()
	o, err := object.Parse([]byte(fields))
	if err != nil {
		t.Fatal(err)
	}
	return passwords.Credentials{Login: login, Password: password, Fields: o}
}

func TestRegisterCreatesUserIdentAndSession(t *testing.T) {
	w := newFixture(t)
	in, mailed, err := w.Registration.Register(t.Context(),
		form(t, "Ada@Example.COM", password, `{"name":"Ada","uuid":"mine","created":"never","idents":[1],"_epoch":7}`),
		from)
	w.must(err)
	if mailed || in.Token == "" || in.ID == "" || !strings.HasPrefix(in.Token, in.ID) ||
		!in.Expires.Equal(w.clock.Now().Add(sessions.SessionIdleTimeout)) {
		t.Errorf("issued %+v, mailed %v", in, mailed)
	}
	user := w.record("Users", in.User.UUID)
	if name, _ := user.Text("name"); name != "Ada" || user["idents"] != nil || user["_epoch"] != nil ||
		string(user["created"]) == `"never"` || len(in.User.UUID) != 36 {
		t.Errorf("the user is %s", user.Encode())
	}
	if hash, _ := user.Text("password"); !strings.HasPrefix(hash, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Errorf("the password is kept as %s", hash)
	}
	if in.Visible["password"] != nil || in.Visible["name"] == nil {
		t.Errorf("the user sees %s", in.Visible.Encode())
	}
	ident := w.record("Idents", "ada@example.com_email")
	delete(ident, "created")
	delete(ident, "updated")
	want := `{"uuid":"ada@example.com_email","_id":"ada@example.com","_proven":false,` +
		`"lastUsed":"2030-01-02T03:04:05.000000Z","profile":{"email":"ada@example.com"},"type":"email","user":"` + in.User.UUID + `","validated":false}`
	if got := string(ident.Encode()); got != want {
		t.Errorf("the ident is %s, want %s", got, want)
	}
	if !w.valid(in.Token) {
		t.Error("the session is not good")
	}
}

// The event is written once, atomically with the user, without secrets.
func TestRegisterPublishesAnEvent(t *testing.T) {
	w := newFixture(t)
	in, _, err := w.Registration.Register(t.Context(),
		form(t, ada, password, `{"name":"Ada","again":"`+password+`","age":3,"uuid":"mine"}`), from)
	w.must(err)
	events := w.recorder.of(event.Register, "Users")
	if len(events) != 1 {
		t.Fatalf("%d Register events", len(events))
	}
	e := events[0]
	if e.UUID != in.User.UUID || e.Actor == nil || *e.Actor != in.User.UUID || e.Origin != event.OriginAuth ||
		e.Object != nil {
		t.Errorf("the event is %+v", e)
	}
	if got, want := string(e.Datas), `{"uuid":"mine","age":3,"login":"ada@example.com","name":"Ada"}`; got != want {
		t.Errorf("datas %s, want %s", got, want)
	}
	var user map[string]any
	w.must(json.Unmarshal(e.User, &user))
	if got := slices.Sorted(maps.Keys(user)); !slices.Equal(got,
		[]string{"age", "created", "name", "updated", "uuid"}) {
		t.Errorf("user %s", e.User)
	}
	saved := w.recorder.of(event.StoreSaved, "Users")
	if len(saved) != 1 || saved[0].Revision != e.Revision {
		t.Errorf("Register at revision %d, saved %+v", e.Revision, saved)
	}
}

func TestRegisterRejectsInvalidForms(t *testing.T) {
	for _, mode := range []func(*account.Options){func(*account.Options) {}, validatedFirst} {
		w := newFixture(t, mode)
		long := strings.Repeat("x", passwords.MaxPassword)
		for _, c := range []struct{ login, password string }{
			{"", ""}, {ada, ""}, {"", password}, {ada, "1234567"}, {ada, long + "x"}, {"ada", password},
			{"@example.com", password},
		} {
			_, mailed, err := w.Registration.Register(t.Context(), credentials(c.login, c.password), from)
			w.wantKind(err, errs.Invalid)
			if mailed {
				t.Errorf("%q, %q: mailed", c.login, c.password)
			}
		}
		for _, store := range []string{"Users", "Idents", "Sessions", "Tokens"} {
			if all := w.objects(store); len(all) > 0 {
				t.Errorf("%s holds %v", store, all)
			}
		}
		w.register(ada, long)
		w.mustLogin(ada, long, w.objects("Users")[0].UUID)
		_, err := w.Login.Login(t.Context(), credentials(ada, long+"x"), from)
		w.wantKind(err, errs.Denied)
	}
}

func TestRegisterRejectsATakenAddress(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	_, _, err := w.Registration.Register(t.Context(), credentials("ADA@example.com", "another password"), from)
	w.wantKind(err, errs.Exists)
	w.mustLogin(ada, password, w.objects("Users")[0].UUID)
}

func TestRegisterRequestsAMailFirst(t *testing.T) {
	w := newFixture(t, validatedFirst)
	_, mailed, err := w.Registration.Register(t.Context(), form(t, ada, password, `{"name":"Ada"}`), from)
	w.must(err)
	if !mailed || len(w.objects("Users"))+len(w.objects("Idents"))+len(w.objects("Sessions")) > 0 ||
		len(w.recorder.of(event.Register, "Users")) > 0 {
		t.Error("something was made without a token")
	}
	m := w.lastMail(ada)
	if m.kind != "validate" || m.From != w.email.From || m.token == "" {
		t.Errorf("mail %+v", m)
	}
	c := form(t, ada, password, `{"name":"Ada"}`)
	for _, wrong := range []string{"wrong", m.token + "x", m.token[1:], strings.ToUpper(m.token)} {
		c.Token = wrong
		_, _, err = w.Registration.Register(t.Context(), c, from)
		w.wantKind(err, errs.Denied)
	}
	c.Login, c.Token = "bob@example.com", m.token
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.Denied)

	// A form that the schema rejects does not consume the token.
	c = form(t, ada, password, `{"name":"bad"}`)
	c.Token = m.token
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.Invalid)

	c = form(t, "ADA@example.com", password, `{"name":"Ada"}`)
	c.Token = m.token
	in, mailed, err := w.Registration.Register(t.Context(), c, from)
	w.must(err)
	if mailed || string(w.record("Idents", "ada@example.com_email")["validated"]) != "true" {
		t.Error("the address is not validated")
	}
	w.mustLogin(ada, password, in.User.UUID)
	if strings.Contains(string(w.recorder.of(event.Register, "Users")[0].Datas), m.token) {
		t.Error("the event of Register contains the token")
	}
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.Denied)
}

func TestRegisterInformsTheOwnerOfATakenAddress(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	w.clock.advance(w.email.MailInterval)
	_, mailed, err := w.Registration.Register(t.Context(), credentials(ada, "another password"), from)
	w.must(err)
	if m := w.lastMail(ada); !mailed || m.kind != "taken" || m.token != "" {
		t.Errorf("mailed %v, %+v", mailed, m)
	}
	w.mustLogin(ada, password, in.User.UUID)
}

// This holds also for a user schema that rejects the password.
func TestARejectedFormDoesNotConsumeTheToken(t *testing.T) {
	w := newFixture(t, validatedFirst)
	_, _, err := w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.must(err)
	c := credentials(ada, password)
	c.Token = w.lastMail(ada).token
	c.Fields = object.Object{}
	c.Fields.Set("big", strings.Repeat("x", 256<<10))
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.TooLarge)
	// The user exceeds the size limit only with the hash of the password.
	c.Fields.Set("big", strings.Repeat("x", 256<<10-100))
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.TooLarge)
	c.Fields = nil
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.must(err)
}

func TestRegisterLinksAnAddressWhileLoggedIn(t *testing.T) {
	for _, first := range []bool{false, true} {
		w := newFixture(t, func(o *account.Options) { o.Email.PostValidation = !first }, github)
		in := w.register(ada, password)
		add := func(login, password string) (sessions.Issued, error) {
			c := credentials(login, password)
			if first {
				w.clock.advance(w.email.MailInterval)
				_, _, err := w.Registration.Register(t.Context(), c, with(in))
				w.must(err)
				c.Token = w.lastMail(login).token
			}
			in, _, err := w.Registration.Register(t.Context(), c, with(in))
			return in, err
		}
		_, err := add("second@example.com", "a wrong password")
		w.wantKind(err, errs.Denied)
		if w.record("Idents", "second@example.com_email") != nil {
			t.Error("linked with a wrong password")
		}
		again, err := add("second@example.com", password)
		w.must(err)
		if again.User.UUID != in.User.UUID || len(w.objects("Users")) != 1 {
			t.Errorf("user %s, and %d users", again.User.UUID, len(w.objects("Users")))
		}
		w.mustLogin("second@example.com", password, in.User.UUID)
		if got := string(w.record("Idents", "second@example.com_email")["validated"]); got != map[bool]string{
			true: "true", false: "false"}[first] {
			t.Errorf("validated %s", got)
		}
		w.Close() // the end of the session before is not waited for
		if w.valid(in.Token) {
			t.Error("the session before lives on")
		}
		bob := w.register("bob@example.com", "the password of bob")
		in = again
		if !first {
			_, err = add("bob@example.com", password)
			w.wantKind(err, errs.Exists)
		}
		w.mustLogin("bob@example.com", "the password of bob", bob.User.UUID)
	}
}

func TestLinkingAnAddressSetsTheFirstPassword(t *testing.T) {
	w := newFixture(t, github)
	in, err := w.loginByProvider("ada", from)
	w.must(err)
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), with(in))
	w.must(err)
	w.mustLogin(ada, password, in.User.UUID)
	back, err := w.loginByProvider("ada", from)
	w.must(err)
	if back.User.UUID != in.User.UUID {
		t.Error("the other ident is missing")
	}
}

func TestLoginByEmailCanBeDisabled(t *testing.T) {
	w := newFixture(t, github, func(o *account.Options) { o.Email = nil })
	in, err := w.loginByProvider("ada", from)
	w.must(err)
	_, err = w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.NotFound)
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.NotFound)
	w.wantKind(w.Registration.ResendValidation(t.Context(), ada, from), errs.NotFound)
	w.wantKind(w.Recovery.Request(t.Context(), ada, from), errs.NotFound)
	w.wantKind(w.Recovery.Recover(t.Context(), credentials(ada, password), from), errs.NotFound)
	_, err = w.Registration.FollowLink(t.Context(), ada, "token", from)
	w.wantKind(err, errs.NotFound)
	w.must(w.deliverMails())
	if !w.valid(in.Token) {
		t.Error("the other way in does not work")
	}
}
