package account_test

import (
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// key makes an API key with the session of a login.
func (w *fixture) key(in sessions.Issued, k keys.New) (keys.Info, string) {
	w.Helper()
	info, token, err := w.Keys.Create(w.Context(), k, password, with(in))
	w.must(err)
	return info, token
}

func TestAnAPIKeyIsItsUser(t *testing.T) {
	w := newFixture(t, admins("true"))
	in := w.register(ada, password)
	info, token := w.key(in, keys.New{Name: "deploy"})
	if info.Name != "deploy" || info.Expires != "" || info.LastUsed != "" || !strings.HasPrefix(token, info.ID) {
		t.Errorf("%+v", info)
	}
	session, err := w.Sessions.Authenticate(t.Context(), token)
	w.must(err)
	if session == nil || session.User.UUID != in.User.UUID || session.Key == nil || session.Key.Name != "deploy" ||
		!session.Key.Allows(t.Context(), nil, "DELETE", "/x") {
		t.Fatalf("%+v", session)
	}
	if w.Sessions.IsAdmin(t.Context(), session) || !w.isAdmin(in.Token) {
		t.Error("an API key is an admin, or its user is none")
	}
	// Use is recorded at most once an hour, and does not extend it.
	w.Close()
	revision := func() uint64 {
		w.Close()
		s, err := w.set.Store("Sessions").Get(t.Context(), info.ID)
		w.must(err)
		return s.Revision
	}
	used := revision()
	w.clock.advance(time.Hour - time.Second)
	if w.valid(token); revision() != used {
		t.Error("written within the hour")
	}
	w.clock.advance(sessions.SessionMaxAge)
	if !w.valid(token) || revision() == used {
		t.Error("the key has ended, or its use is not recorded")
	}
	list, err := w.Keys.List(t.Context(), &in.Session)
	w.must(err)
	if len(list) != 1 || list[0].LastUsed == "" || list[0].Expires != "" {
		t.Errorf("%+v", list)
	}
	if n, err := w.DeleteExpired(t.Context(), 100); err != nil || !w.valid(token) {
		t.Error("deleted as expired", n, err)
	}
	kept := string(w.record("Sessions", info.ID).Encode())
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	for _, text := range []string{kept, w.recorder.raw.String(), w.log.String()} {
		if strings.Contains(text, token[len(info.ID):]) {
			t.Error("the token is kept")
		}
	}
}

func TestAPIKeysEnd(t *testing.T) {
	for how, end := range map[string]func(w *fixture, in sessions.Issued, info keys.Info){
		"revoked": func(w *fixture, in sessions.Issued, info keys.Info) {
			w.must(w.Keys.Revoke(w.Context(), &in.Session, info.ID))
		},
		"by an admin": func(w *fixture, in sessions.Issued, info keys.Info) {
			w.must(w.Admin.EndKey(w.Context(), in.User.UUID, info.ID))
		},
		"expired": func(w *fixture, _ sessions.Issued, _ keys.Info) { w.clock.advance(time.Hour) },
		"the user is disabled": func(w *fixture, in sessions.Issued, _ keys.Info) {
			_, err := w.Admin.SetDisabled(w.Context(), in.User.UUID, true)
			w.must(err)
		},
		"and enabled": func(w *fixture, in sessions.Issued, _ keys.Info) {
			for _, disabled := range []bool{true, false} {
				_, err := w.Admin.SetDisabled(w.Context(), in.User.UUID, disabled)
				w.must(err)
			}
		},
		"the user is deleted": func(w *fixture, in sessions.Issued, _ keys.Info) {
			w.must(w.Admin.DeleteUser(w.Context(), in.User.UUID))
		},
		"a new password": func(w *fixture, in sessions.Issued, _ keys.Info) {
			_, err := w.Recovery.ChangePassword(w.Context(), password, "a better password", with(in))
			w.must(err)
		},
		"a recovery": func(w *fixture, _ sessions.Issued, _ keys.Info) {
			w.must(w.Recovery.Request(w.Context(), ada, from))
			c := credentials(ada, "a better password")
			c.Token = w.lastMail(ada).token
			w.must(w.Recovery.Recover(w.Context(), c, from))
		},
	} {
		w := newFixture(t)
		in := w.register(ada, password)
		info, token := w.key(in, keys.New{Name: "deploy", Expires: w.clock.Now().Add(time.Hour)})
		w.clock.advance(time.Hour - time.Second)
		if !w.valid(token) || info.Expires == "" {
			t.Errorf("%s: not valid before", how)
		}
		w.clock.advance(-time.Hour + time.Second)
		end(w, in, info)
		if w.valid(token) {
			t.Errorf("%s: the key is valid", how)
		}
		w.Close()
	}
}

func TestWhoMakesAnAPIKeyIsLoggedInAndGivesThePassword(t *testing.T) {
	w := newFixture(t, github)
	in := w.register(ada, password)
	bob := w.register("bob@example.com", password)
	info, token := w.key(in, keys.New{Name: "deploy"})
	create := func(c sessions.Client, password string, k keys.New) error {
		_, _, err := w.Keys.Create(t.Context(), k, password, c)
		return err
	}
	k := keys.New{Name: "x"}
	w.wantKind(create(with(in), "", k), errs.Denied)
	w.wantKind(create(with(in), "a wrong password", k), errs.Denied)
	session, err := w.Sessions.Authenticate(t.Context(), token)
	w.must(err)
	byKey := from
	byKey.Session = session
	w.wantKind(create(byKey, password, k), errs.Denied)
	_, err = w.Recovery.ChangePassword(t.Context(), password, "a better password", byKey)
	w.wantKind(err, errs.Denied)

	w.wantKind(w.Keys.Revoke(t.Context(), &bob.Session, info.ID), errs.NotFound)
	w.wantKind(w.Admin.EndKey(t.Context(), bob.User.UUID, info.ID), errs.NotFound)
	w.wantKind(w.Keys.Revoke(t.Context(), &in.Session, in.ID), errs.NotFound) // a session is no key
	w.wantKind(w.Sessions.RevokeOwn(t.Context(), &in.Session, info.ID), errs.NotFound)
	w.wantKind(w.Keys.Revoke(t.Context(), &in.Session, "../x"), errs.NotFound)
	if list, err := w.Keys.List(t.Context(), &bob.Session); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := w.Sessions.List(t.Context(), &in.Session); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	for name, k := range map[string]keys.New{
		"/name":    {Name: ""},
		"/name ":   {Name: strings.Repeat("x", 101)},
		"/name  ":  {Name: "a\nb"},
		"/name   ": {Name: " a"},
		"/expires": {Name: "x", Expires: w.clock.Now()},
		"/rule":    {Name: "x", Rule: "user.admin"},
		"/rule ":   {Name: "x", Rule: strings.Repeat(" ", 1001)},
	} {
		err := create(with(in), password, k)
		w.wantKind(err, errs.Invalid)
		if !strings.Contains(err.Error(), strings.TrimSpace(name)+": ") {
			t.Error(name, err)
		}
	}
	// Of a user without a password none is asked for.
	byProvider, err := w.loginByProvider("1815", from)
	w.must(err)
	w.must(create(with(byProvider), "", k))
	// A session that has ended makes none.
	w.must(w.Sessions.Logout(t.Context(), &in.Session))
	w.wantKind(create(with(in), password, k), errs.Unauthenticated)
	if !w.valid(token) {
		t.Error("a logout ends keys")
	}
}

func TestARuleNarrowsAnAPIKey(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	_, token := w.key(in, keys.New{Name: "reader", Rule: `method in ["GET", "HEAD"] && path.startsWith("/notes/")`})
	session, err := w.Sessions.Authenticate(t.Context(), token)
	w.must(err)
	for request, allowed := range map[[2]string]bool{
		{"GET", "/notes/1"}: true, {"HEAD", "/notes/1"}: true, {"PUT", "/notes/1"}: false, {"GET", "/notes"}: false,
		{"GET", "/users/1"}: false, {"get", "/notes/1"}: false,
	} {
		if got := session.Key.Allows(t.Context(), nil, request[0], request[1]); got != allowed {
			t.Errorf("%v: %t", request, got)
		}
	}
	// A rule that can't be read allows nothing.
	stored, err := w.set.Store("Sessions").Get(t.Context(), session.ID)
	w.must(err)
	o, err := stored.Object()
	w.must(err)
	o.Set("rule", "not CEL at all")
	_, err = w.set.Store("Sessions").Update(t.Context(), o, store.UpdateOptions{UUID: session.ID})
	w.must(err)
	session, err = w.Sessions.Authenticate(t.Context(), token)
	w.must(err)
	if session.Key.Allows(t.Context(), nil, "GET", "/notes/1") {
		t.Error("a rule that can't be compiled allows")
	}
}

func TestAPIKeysAreBoundedAndLoginsEndNone(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	_, token := w.key(in, keys.New{Name: "0"})
	for range 99 {
		w.key(in, keys.New{Name: "more"})
	}
	_, _, err := w.Keys.Create(t.Context(), keys.New{Name: "x"}, password, with(in))
	w.wantKind(err, errs.Conflict)
	for range 101 {
		w.clock.advance(time.Second)
		in = w.mustLogin(ada, password, in.User.UUID)
	}
	w.Close()
	if !w.valid(token) {
		t.Error("logins end keys")
	}
	if list, err := w.Sessions.List(t.Context(), &in.Session); err != nil || len(list) != 100 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
}

func TestMachinesHaveKeysAndNoLogin(t *testing.T) {
	w := newFixture(t)
	ctx := store.WithCall(t.Context(), store.Call{Origin: event.OriginCommand})
	machine, err := w.Admin.CreateUser(ctx, admin.NewUser{Machine: true})
	w.must(err)
	if n := len(w.recorder.of(event.Register, "Users")) + len(w.objects("Idents")); n > 0 {
		t.Error("a machine is registered")
	}
	info, token, err := w.Admin.IssueKey(ctx, machine, keys.New{Name: "ci"})
	w.must(err)
	if session, err := w.Sessions.Authenticate(t.Context(), token); err != nil || session == nil ||
		session.User.UUID != machine.UUID {
		t.Fatalf("%+v, %v", session, err)
	}
	details, err := w.Admin.AccountDetails(t.Context(), machine)
	w.must(err)
	if len(details.Keys) != 1 || details.Keys[0].ID != info.ID || len(details.Sessions) > 0 {
		t.Errorf("%+v", details)
	}
	_, err = w.Admin.SetDisabled(ctx, machine.UUID, true)
	w.must(err)
	machine, err = w.Admin.FindUser(t.Context(), machine.UUID)
	w.must(err)
	_, _, err = w.Admin.IssueKey(ctx, machine, keys.New{Name: "ci"})
	w.wantKind(err, errs.Denied)
	for _, u := range []admin.NewUser{{Machine: true, Login: ada}, {Machine: true, Password: password},
		{Machine: true, Validated: true}} {
		_, err = w.Admin.CreateUser(ctx, u)
		w.wantKind(err, errs.Invalid)
	}
}

// The rule of a key is compiled for who has proven who they are: for a thief of a session it costs nothing.
func TestTheRuleOfAKeyIsReadAfterTheProof(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	k := keys.New{Name: "deploy", Rule: "no rule ("}
	_, _, err := w.Keys.Create(t.Context(), k, "a wrong password", with(in))
	w.wantKind(err, errs.Denied)
	_, _, err = w.Keys.Create(t.Context(), k, password, with(in))
	w.wantKind(err, errs.Invalid)
}
