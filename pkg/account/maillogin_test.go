package account_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

const bob = "bob@example.com"

// secret is the code or the token in a mail: its last word.
func (m sentMail) secret() string {
	words := strings.Fields(m.Text)
	return words[len(words)-1]
}

// requestLogin requests a login by mail and returns the client that it is bound to.
func (w *fixture) requestLogin(login, kind string) sessions.Client {
	w.Helper()
	pending, err := w.Mails.RequestLogin(w.Context(), login, kind, from)
	w.must(err)
	return bound(from, pending)
}

func bound(c sessions.Client, p mails.RequestedLogin) sessions.Client {
	c.Binding = p.Binding
	return c
}

// mailedCode requests a code, and returns it with the client that it is bound to.
func (w *fixture) mailedCode(login string) (string, sessions.Client) {
	w.Helper()
	w.clock.advance(w.email.MailInterval)
	client := w.requestLogin(login, record.MethodCode)
	m := w.lastMail(login)
	if m.kind != "code" {
		w.Fatalf("the mail is %q", m.kind)
	}
	return m.secret(), client
}

// wrong is a code that another one is not.
func wrong(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

func (w *fixture) wantWrongCode(login, code string, c sessions.Client) {
	w.Helper()
	_, err := w.Login.LoginByMail(w.Context(), login, code, c)
	w.wantKind(err, errs.Denied)
}

func TestCodesAreSixUniformDigits(t *testing.T) {
	counts := map[byte]int{}
	for range 10_000 {
		code := account.NewCode()
		if !regexp.MustCompile(`^\d{6}$`).MatchString(code) {
			t.Fatal(code)
		}
		counts[code[0]]++
	}
	for digit := byte('0'); digit <= '9'; digit++ {
		if n := counts[digit]; n < 700 || n > 1300 { // 10 standard deviations
			t.Errorf("%d of 10000 codes begin with %c", n, digit)
		}
	}
}

func TestACodeLogsInOnce(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	code, client := w.mailedCode(ada)
	session, err := w.Login.LoginByMail(t.Context(), " Ada@Example.COM"[1:], code[:3]+" "+code[3:], client)
	w.must(err)
	if session.User.UUID != in.User.UUID || !slices.Equal(session.Methods, []string{record.MethodCode}) ||
		session.AAL != 1 || !w.valid(session.Token) {
		t.Errorf("%+v", session)
	}
	w.wantWrongCode(ada, code, client)
	w.mustLogin(ada, password, in.User.UUID) // the password stays: the address was proven before
	w.Close()
	if raw := w.recorder.raw.String(); strings.Contains(raw, `"`+code) || strings.Contains(raw, client.Binding) ||
		strings.Contains(raw, "_logins") {
		t.Error("an event holds the code, or what binds it")
	}
}

func TestACodeIsForOneBrowserAddressAndAccount(t *testing.T) {
	w := newFixture(t, validatedFirst)
	w.register(ada, password)
	w.register(bob, password)
	code, client := w.mailedCode(ada)
	other := w.requestLogin(bob, record.MethodCode)
	w.wantWrongCode(ada, code, from)
	w.wantWrongCode(ada, code, other)
	w.wantWrongCode(bob, code, client)
	w.wantWrongCode("none@example.com", code, client)
	if n := len(w.recorder.of(event.AuthLoginFailed, "Users")); n != 0 {
		t.Errorf("%d failed logins of who could not have guessed", n)
	}
	must(w.Login.LoginByMail(t.Context(), ada, code, client))

	// It ends with the password, and with the rights of the user.
	code, client = w.mailedCode(ada)
	ended := must(w.Admin.EndSessions(t.Context(), w.mustLogin(ada, password, w.owner(ada)).User.UUID))
	w.wantWrongCode(ada, code, client)
	code, client = w.mailedCode(ada)
	must(w.Admin.SetDisabled(t.Context(), ended.UUID, true))
	must(w.Admin.SetDisabled(t.Context(), ended.UUID, false))
	w.wantWrongCode(ada, code, client)
}

// owner returns the uuid of the user of an address.
func (w *fixture) owner(address string) string {
	w.Helper()
	user, _ := w.record("Idents", address+"_email").Text("user")
	return user
}

func TestACodeExpiresAndIsReplaced(t *testing.T) {
	w := newFixture(t, validatedFirst)
	w.register(ada, password)
	code, client := w.mailedCode(ada)
	w.clock.advance(w.email.Login.TTL - time.Microsecond)
	late, lateClient := code, client
	w.clock.advance(time.Microsecond)
	w.wantWrongCode(ada, late, lateClient)

	// Another request of the same browser replaces it, that of another one does not.
	code, client = w.mailedCode(ada)
	w.clock.advance(w.email.MailInterval)
	pending := must(w.Mails.RequestLogin(t.Context(), ada, record.MethodCode, client))
	second := w.lastMail(ada).secret()
	w.wantWrongCode(ada, code, client)
	third, thirdClient := w.mailedCode(ada)
	must(w.Login.LoginByMail(t.Context(), ada, second, bound(from, pending)))
	must(w.Login.LoginByMail(t.Context(), ada, third, thirdClient))

	// A mail that could not be sent in time is not sent.
	w.clock.advance(w.email.MailInterval)
	w.requestLogin(ada, record.MethodCode)
	n := len(w.sender.to(ada))
	w.clock.advance(w.email.Login.TTL)
	if now := w.countMails(ada); now != n {
		t.Error("a code was mailed that has expired")
	}
	_, err := w.Mails.RequestLogin(t.Context(), ada, record.MethodCode, from)
	w.must(err)
	_, err = w.Mails.RequestLogin(t.Context(), ada, record.MethodLink, from)
	w.wantKind(err, errs.Limited)
	for _, bad := range []struct{ login, kind string }{{"", ""}, {"ada", ""}, {ada, "sms"}} {
		_, err = w.Mails.RequestLogin(t.Context(), bad.login, bad.kind, from)
		w.wantKind(err, errs.Invalid)
	}
}

// The tries of all processes count together, however many are made at once.
func TestACodeHasFiveTriesInAllProcesses(t *testing.T) {
	w := newFixture(t, validatedFirst)
	w.register(ada, password)
	services := w.twoServices()
	for range 5 {
		before := len(w.recorder.of(event.AuthLoginFailed, "Users"))
		code, client := w.mailedCode(ada)
		concurrently(services, 16, func(_ int, s *account.Service) {
			_, err := s.Login.LoginByMail(t.Context(), ada, wrong(code), client)
			w.allowKinds(err, errs.Denied, errs.Conflict)
			if err == nil {
				t.Error("a wrong code logged in")
			}
		})
		w.wantWrongCode(ada, wrong(code), client)
		w.wantWrongCode(ada, wrong(code), client)
		w.wantWrongCode(ada, wrong(code), client)
		w.wantWrongCode(ada, wrong(code), client)
		w.wantWrongCode(ada, wrong(code), client)
		w.wantWrongCode(ada, code, client)
		failed := w.recorder.of(event.AuthLoginFailed, "Users")[before:]
		if len(failed) != account.MaxTries {
			t.Errorf("%d failed logins", len(failed))
		}
		for _, e := range failed {
			if e.UUID != w.owner(ada) || string(e.Auth) != `{"method":"code","reason":"code"}` {
				t.Errorf("%s %s", e.UUID, e.Auth)
			}
		}
	}
}

func TestOneOfConcurrentUsesOfACodeLogsIn(t *testing.T) {
	w := newFixture(t, validatedFirst)
	w.register(ada, password)
	services := w.twoServices()
	for range 20 {
		code, client := w.mailedCode(ada)
		var won atomic.Int32
		concurrently(services, 4, func(_ int, s *account.Service) {
			_, err := s.Login.LoginByMail(t.Context(), ada, code, client)
			w.allowKinds(err, errs.Denied, errs.Conflict)
			if err == nil {
				won.Add(1)
			}
		})
		if won.Load() != 1 {
			t.Fatalf("%d have logged in", won.Load())
		}
	}
}

// Who asks for code after code can't guess faster for that; the other address has its own counter.
func TestWrongCodesDelayFurtherOnes(t *testing.T) {
	w := newFixture(t, validatedFirst, limits(0, 5))
	w.register(ada, password)
	for _, login := range []string{ada, "none@example.com"} {
		guess := func() error {
			w.clock.advance(w.email.MailInterval)
			client := w.requestLogin(login, record.MethodCode)
			w.must(w.deliverMails())
			for range account.MaxTries {
				_, err := w.Login.LoginByMail(t.Context(), login, "xxxxxx", client)
				if errs.KindOf(err) != errs.Denied {
					return err
				}
			}
			return nil
		}
		w.must(guess())
		var waited int
		for range 12 {
			if err := guess(); err != nil {
				w.wantKind(err, errs.Limited)
				waited++
			}
		}
		if waited < 11 {
			t.Errorf("%s: %d of 12 had to wait", login, waited)
		}
	}
	// Guesses do not delay the password.
	w.mustLogin(ada, password, w.owner(ada))
	w.clock.advance(15 * time.Minute)
	code, client := w.mailedCode(ada)
	must(w.Login.LoginByMail(t.Context(), ada, code, client))
	code, client = w.mailedCode(ada)
	w.wantWrongCode(ada, wrong(code), client)
	w.wantWrongCode(ada, wrong(code), client) // the right one has reset the delay
}

// An address without an account, or with one that is disabled, costs the same reads and writes, in the request, the
// listener and the login, and leaves as many records.
func TestALoginByMailDoesTheSameForEveryAddress(t *testing.T) {
	w := newFixture(t, validatedFirst)
	w.register(ada, password)
	out := w.register("out@example.com", password)
	must(w.Admin.SetDisabled(t.Context(), out.User.UUID, true))
	w.Close()
	w.must(w.deliverMails())
	work := func(login, kind string) (done []string) {
		w.clock.advance(w.email.MailInterval)
		w.backend.onStep(func(_ context.Context, s step) error {
			if !s.after {
				done = append(done, fmt.Sprint(s.store, " ", s.write != nil))
			}
			return nil
		})
		defer w.backend.onStep(nil)
		before := len(w.objects("Tokens"))
		client := w.requestLogin(login, kind)
		_, err := w.Mails.RequestLogin(t.Context(), login, kind, from)
		done = append(done, fmt.Sprint(err))
		w.must(w.deliverMails())
		for range account.MaxTries + 1 {
			_, err := w.Login.LoginByMail(t.Context(), login, "xxxxxx", client)
			done = append(done, fmt.Sprint(err))
		}
		return append(done, fmt.Sprint(len(w.objects("Tokens"))-before))
	}
	for _, kind := range []string{record.MethodCode, record.MethodLink} {
		known := work(ada, kind)
		for _, login := range []string{"none@example.com", "out@example.com"} {
			if other := work(login, kind); len(known) < 20 || !slices.Equal(known, other) {
				t.Errorf("known: %q\n%s: %q", known, login, other)
			}
			if n := len(w.sender.to(login)); login != ada && n > 1 {
				t.Errorf("%d mails to %s", n, login)
			}
		}
	}
	if len(w.objects("Users")) != 2 {
		t.Error("a user was created")
	}
}

func TestALinkUsesNothingUp(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	w.clock.advance(w.email.MailInterval)
	client := w.requestLogin(ada, record.MethodLink)
	m := w.lastMail(ada)
	if m.kind != "link" || m.token == "" {
		t.Fatalf("%+v", m)
	}
	before := w.record("Tokens", ada+"_login")
	for range 10 {
		if to, err := w.Registration.FollowLink(t.Context(), ada, m.token, client); err != nil || to != post.OpenLogin {
			t.Fatal(to, err)
		}
		if to, err := w.Registration.FollowLink(t.Context(), ada, m.token, from); err != nil ||
			to != post.OpenLoginElsewhere {
			t.Fatal(to, err)
		}
	}
	if after := w.record("Tokens", ada+"_login"); string(after.Encode()) != string(before.Encode()) {
		t.Error("following the link has changed something")
	}
	_, err := w.Registration.FollowLink(t.Context(), bob, m.token, client)
	w.wantKind(err, errs.Denied)
	w.wantWrongCode(ada, m.token, from)
	session := must(w.Login.LoginByMail(t.Context(), ada, m.token, client))
	if session.User.UUID != in.User.UUID || !slices.Equal(session.Methods, []string{record.MethodLink}) {
		t.Errorf("%+v", session)
	}
	_, err = w.Registration.FollowLink(t.Context(), ada, m.token, client)
	w.wantKind(err, errs.Denied)
	w.wantWrongCode(ada, m.token, client)
}

// A stranger who has registered an address keeps nothing once its owner logs in by mail.
func TestALoginByMailTakesAnUnprovenAccountFromAStranger(t *testing.T) {
	w := newFixture(t)
	eve := w.register(ada, password)
	eve, _, err := w.Registration.Register(t.Context(), credentials("eve@example.com", password), with(eve))
	w.must(err)
	code, client := w.mailedCode(ada)
	in := must(w.Login.LoginByMail(t.Context(), ada, code, client))
	if in.User.UUID != eve.User.UUID || !w.valid(in.Token) {
		t.Errorf("logged in as %s", in.User.UUID)
	}
	if w.valid(eve.Token) {
		t.Error("the session of the stranger has not ended")
	}
	for _, login := range []string{ada, "eve@example.com"} {
		if _, err := w.Login.Login(t.Context(), credentials(login, password), from); err == nil {
			t.Errorf("the stranger logs in by %s", login)
		}
	}
	ident := w.record("Idents", adaIdent)
	if string(ident["validated"]) != "true" || string(ident["_proven"]) != "true" {
		t.Errorf("the ident is %s", ident.Encode())
	}
	// From now on it is theirs, and a login by mail keeps everything.
	if _, err = w.Recovery.ChangePassword(t.Context(), "", "the password of ada", with(in)); err != nil {
		t.Fatal(err)
	}
	code, client = w.mailedCode(ada)
	must(w.Login.LoginByMail(t.Context(), ada, code, client))
	w.mustLogin(ada, "the password of ada", in.User.UUID)
}

// An address that somebody has added by mistake gets its owner an account of their own.
func TestALoginByMailWithAnAddedAddressIsToAnAccountOfItsOwn(t *testing.T) {
	w := newFixture(t)
	eve := w.register("eve@example.com", password)
	_, _, err := w.Registration.Register(t.Context(), credentials(ada, password), with(eve))
	w.must(err)
	code, client := w.mailedCode(ada)
	in := must(w.Login.LoginByMail(t.Context(), ada, code, client))
	if in.User.UUID == eve.User.UUID || w.owner(ada) != in.User.UUID {
		t.Error("the owner of the address is in the account of another")
	}
	w.mustLogin("eve@example.com", password, eve.User.UUID)
}

// Who has the account and the address at once proves that both are theirs.
func TestALoginByMailInTheSessionOfTheAccountKeepsIt(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	code, client := w.mailedCode(ada)
	client.Session = &in.Session
	must(w.Login.LoginByMail(t.Context(), ada, code, client))
	w.mustLogin(ada, password, in.User.UUID)
	if string(w.record("Idents", adaIdent)["_proven"]) != "true" {
		t.Error("the address is not proven")
	}
}

func TestSecondCodesAreBoundToTheirLogin(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	other := w.register(bob, password)
	send := func(login string) string {
		w.clock.advance(w.email.MailInterval)
		w.must(w.SendSecondCode(t.Context(), in.User, login))
		return w.lastMail(ada).secret()
	}
	check := func(want bool, user sessions.Issued, login, code string) {
		t.Helper()
		right, err := w.CheckSecondCode(t.Context(), user.User, login, code)
		w.must(err)
		if right != want {
			t.Errorf("%s is %t for %s", code, right, login)
		}
	}
	code := send("flow 1")
	w.wantKind(w.SendSecondCode(t.Context(), in.User, "flow 2"), errs.Limited)
	check(false, in, "flow 2", code)
	check(false, other, "flow 1", code)
	w.wantWrongCode(ada, code, from)
	// A login by mail neither delays it nor replaces it.
	w.requestLogin(ada, record.MethodCode)
	check(true, in, "flow 1", code)
	check(false, in, "flow 1", code)

	services := w.twoServices()
	code = send("flow 3")
	concurrently(services, 16, func(_ int, s *account.Service) {
		right, err := s.CheckSecondCode(t.Context(), in.User, "flow 3", wrong(code))
		w.allowKinds(err, errs.Conflict)
		if right {
			t.Error("a wrong code is right")
		}
	})
	for range account.MaxTries {
		check(false, in, "flow 3", wrong(code))
	}
	check(false, in, "flow 3", code)
	if n := len(w.recorder.of(event.AuthLoginFailed, "Users")); n != account.MaxTries {
		t.Errorf("%d failed logins", n)
	}
	code = send("flow 4")
	must(w.Admin.EndSessions(t.Context(), in.User.UUID))
	user := must(w.Admin.FindUser(t.Context(), ada))
	if right, err := w.CheckSecondCode(t.Context(), w.userOf(user), "flow 4", code); right || err != nil {
		t.Errorf("a code outlives the end of all sessions: %t, %v", right, err)
	}

	// Without an address there is none to send it to; of several, the one that is proven counts.
	machine := must(w.Admin.CreateUser(t.Context(), admin.NewUser{Machine: true, Fields: object.Object{}}))
	w.wantKind(w.SendSecondCode(t.Context(), w.userOf(machine), "flow"), errs.Conflict)
}

func TestWrongSecondCodesDelayTheUser(t *testing.T) {
	w := newFixture(t, validatedFirst, limits(0, 5))
	in := w.register(ada, password)
	var limited bool
	for round := range 3 {
		w.clock.advance(w.email.MailInterval)
		w.must(w.SendSecondCode(t.Context(), in.User, fmt.Sprint(round)))
		w.must(w.deliverMails())
		w.mustLogin(ada, password, in.User.UUID) // which resets no counter of codes
		for range account.MaxTries {
			_, err := w.CheckSecondCode(t.Context(), in.User, fmt.Sprint(round), "xxxxxx")
			w.allowKinds(err, errs.Limited)
			limited = limited || err != nil
		}
	}
	if !limited {
		t.Error("fifteen wrong codes without a delay")
	}
}
