package account_test

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

func TestAnIdleSessionExpires(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.clock.advance(sessions.SessionIdleTimeout - time.Microsecond)
	session, err := w.Sessions.Authenticate(t.Context(), in.Token)
	w.must(err)
	if session == nil || session.ID != in.ID || session.User.UUID != in.User.UUID ||
		session.Visible["password"] != nil {
		t.Fatalf("the session is %+v", session)
	}
	other := w.mustLogin(ada, password, in.User.UUID)
	w.clock.advance(sessions.SessionIdleTimeout)
	if w.valid(other.Token) {
		t.Error("good after the time that it may be idle")
	}
}

// A session in use is extended up to its maximum age.
func TestASessionInUseIsExtended(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	start := w.clock.Now()
	for w.clock.Now().Sub(start) < sessions.SessionMaxAge {
		if !w.valid(in.Token) {
			t.Fatalf("not good any more after %s", w.clock.Now().Sub(start))
		}
		w.Close() // the note of its use is not waited for
		w.clock.advance(sessions.SessionIdleTimeout / 2)
	}
	if got := w.clock.Now().Sub(start); w.valid(in.Token) || got != sessions.SessionMaxAge+
		sessions.SessionIdleTimeout/2-sessions.SessionMaxAge%(sessions.SessionIdleTimeout/2) {
		t.Errorf("good: %v after %s", w.valid(in.Token), got)
	}
	if e, _ := w.record("Sessions", in.ID).Text("expires"); e != start.Add(sessions.SessionMaxAge).
		Format("2006-01-02T15:04:05.000000Z") {
		t.Errorf("expires %s", e)
	}
}

func TestASessionIsNotWrittenOnEveryRequest(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	revision := func() uint64 {
		w.Close()
		s, err := w.set.Store("Sessions").Get(t.Context(), in.ID)
		w.must(err)
		return s.Revision
	}
	first := revision()
	w.clock.advance(time.Hour - time.Second)
	if w.valid(in.Token); revision() != first {
		t.Error("written within the hour")
	}
	w.clock.advance(time.Second)
	if w.valid(in.Token); revision() == first {
		t.Error("not written after an hour")
	}
}

func TestInvalidTokensAreRejected(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	other := w.register("bob@example.com", password)
	flip := func(i int) string {
		raw := []byte(in.Token)
		raw[i] = map[bool]byte{true: 'B', false: 'A'}[raw[i] == 'A']
		return string(raw)
	}
	for _, token := range []string{
		"", "x", in.ID, in.Token[:64], in.Token + "A", in.Token[1:], in.Token[:64] + "=", " " + in.Token,
		in.Token + "\x00", flip(0), flip(22), flip(40),
		in.ID + other.Token[22:], other.ID + in.Token[22:], strings.Repeat("A", 65), strings.Repeat("\x00", 65),
		strings.Repeat("../", 21) + "..",
		in.ID + strings.Repeat("\u00e9", 21) + "x", strings.ToUpper(in.Token), strings.Repeat("A", 1<<20),
		in.ID + base64.RawURLEncoding.EncodeToString(make([]byte, 32)),
	} {
		if session, err := w.Sessions.Authenticate(t.Context(), token); session != nil || err != nil {
			t.Errorf("%.80q: %v, %v", token, session, err)
		}
	}
	if !w.valid(in.Token) {
		t.Error("the token is not good")
	}
}

func TestOnlyAHashOfTheSessionTokenIsStored(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	secret := in.Token[len(in.ID):]
	kept := w.record("Sessions", in.ID)
	hash, _ := kept.Text("_hash")
	if hash == "" || strings.Contains(string(kept.Encode()), secret) || w.valid(in.ID+hash) {
		t.Errorf("kept %s of token %s", kept.Encode(), in.Token)
	}
	if len(kept["_hash"]) != 43+2 || len(secret) != 43 {
		t.Errorf("a secret of %d letters", len(secret))
	}
	delete(kept, "_hash")
	_, err := store.NewWorker(w.set.Store("Sessions")).CompareAndSet(t.Context(),
		must(w.set.Store("Sessions").Get(t.Context(), in.ID)), object.Object{"_hash": nil})
	w.must(err)
	if w.valid(in.Token) || w.valid(in.ID) {
		t.Error("a session without a hash is good")
	}
}

// must returns v in the middle of an expression.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func TestALoginEndsThePreviousSession(t *testing.T) {
	w := newFixture(t, github)
	in := w.register(ada, password)
	next, err := w.Login.Login(t.Context(), credentials(ada, password), with(in))
	w.must(err)
	w.Close()
	if w.valid(in.Token) || !w.valid(next.Token) || next.ID == in.ID {
		t.Error("the session of before is good, or the new one is not")
	}
	_, err = w.Login.Login(t.Context(), credentials(ada, "another password"), with(next))
	w.wantKind(err, errs.Denied)
	if w.Close(); !w.valid(next.Token) {
		t.Error("a login that fails ends the session")
	}
}

func TestLogout(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	other := w.mustLogin(ada, password, in.User.UUID)
	w.must(w.Sessions.Logout(t.Context(), &in.Session))
	w.must(w.Sessions.Logout(t.Context(), &in.Session))
	if w.valid(in.Token) || !w.valid(other.Token) {
		t.Error("the wrong session has ended")
	}
}

func TestListAndRevokeSessions(t *testing.T) {
	w := newFixture(t)
	bob := w.register("bob@example.com", password)
	first := w.register(ada, password)
	w.clock.advance(time.Second)
	second, err := w.Login.Login(t.Context(), credentials(ada, password),
		sessions.Client{Address: "2001:db8::1", UserAgent: "phone"})
	w.must(err)
	w.clock.advance(sessions.SessionIdleTimeout - time.Second)
	third := w.mustLogin(ada, password, first.User.UUID) // first has expired by now

	list, err := w.Sessions.List(t.Context(), &third.Session)
	w.must(err)
	want := []sessions.Info{
		{ID: second.ID, Type: "email", Origin: sessions.Origin{Address: "2001:db8::1", UserAgent: "phone"},
			Created: "2030-01-02T03:04:06.000000Z", LastUsed: "2030-01-02T03:04:06.000000Z",
			Expires: "2030-01-09T03:04:06.000000Z",
			Methods: []string{"password"}, AAL: 1, AuthenticatedAt: "2030-01-02T03:04:06.000000Z"},
		{ID: third.ID, Current: true, Type: "email",
			Origin:  sessions.Origin{Address: from.Address, UserAgent: from.UserAgent},
			Created: "2030-01-09T03:04:05.000000Z", LastUsed: "2030-01-09T03:04:05.000000Z",
			Expires: "2030-01-16T03:04:05.000000Z",
			Methods: []string{"password"}, AAL: 1, AuthenticatedAt: "2030-01-09T03:04:05.000000Z"},
	}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("the list is %+v\nwant %+v", list, want)
	}

	for _, id := range []string{bob.ID, "none", "", "../x", strings.Repeat("x", 300), second.Token, "a/b"} {
		w.wantKind(w.Sessions.RevokeOwn(t.Context(), &third.Session, id), errs.NotFound)
	}
	w.must(w.Sessions.RevokeOwn(t.Context(), &third.Session, second.ID))
	w.wantKind(w.Sessions.RevokeOwn(t.Context(), &third.Session, second.ID), errs.NotFound)
	if w.valid(second.Token) || !w.valid(third.Token) {
		t.Error("the wrong session was revoked")
	}
	list, err = w.Sessions.List(t.Context(), &third.Session)
	w.must(err)
	if len(list) != 1 || list[0].ID != third.ID {
		t.Errorf("the list is %+v", list)
	}
}

// There are more sessions than a page has.
func TestListManySessions(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.Close() // the sessions beyond the limit are ended in the background
	const many = 230
	for i := range many {
		s := object.Object{}
		s.Set("user", in.User.UUID)
		s.Set("expires", "2031-01-01T00:00:00.000000Z")
		if i%2 == 0 {
			s.Set("_epoch", 1) // ended with all of its time
		}
		must(w.set.Store("Sessions").Save(t.Context(), s, ""))
	}
	list, err := w.Sessions.List(t.Context(), &in.Session)
	w.must(err)
	ids := map[string]bool{}
	for _, s := range list {
		ids[s.ID] = true
	}
	if len(list) != many/2+1 || len(ids) != len(list) {
		t.Errorf("%d sessions, %d different, want %d", len(list), len(ids), many/2+1)
	}
}

// The sessions of a deleted user are invalid, and the address is free, before
// the cascade has deleted anything.
func TestADeletedUserHasNoSession(t *testing.T) {
	for _, cascaded := range []bool{true, false} {
		w := newFixture(t)
		in := w.register(ada, password)
		second := w.mustLogin(ada, password, in.User.UUID)
		w.must(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
		if w.valid(in.Token) || w.valid(second.Token) {
			t.Error("a session outlives its user")
		}
		if cascaded {
			w.cascade()
			if n := len(w.objects("Sessions")) + len(w.objects("Idents")); n > 0 {
				t.Errorf("%d sessions and idents are left", n)
			}
		}
		_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
		w.wantKind(err, errs.NotFound)
		again := w.register(ada, "another password")
		w.cascade() // late or redelivered: the new user and sessions stay
		if again.User.UUID == in.User.UUID {
			t.Error("the uuid is that of the user who was deleted")
		}
		w.mustLogin(ada, "another password", again.User.UUID)
		if w.valid(in.Token) || !w.valid(again.Token) {
			t.Error("the wrong session is good")
		}
		if left := len(w.objects("Sessions")); left != 2 {
			t.Errorf("%d sessions are left, want 2", left)
		}
	}
}

func TestDeleteExpired(t *testing.T) {
	w := newFixture(t, github)
	in := w.register(ada, password)
	w.must(w.Recovery.Request(t.Context(), "bob@example.com", from))
	_, err := w.Providers.Begin(t.Context(), "github", true, from)
	w.must(err)
	for range 5 {
		w.mustLogin(ada, password, in.User.UUID)
	}
	clean := func(limit, want int) {
		t.Helper()
		n, err := w.DeleteExpired(t.Context(), limit)
		w.must(err)
		if n != want {
			t.Errorf("%d removed, want %d", n, want)
		}
	}
	clean(100, 0)
	w.clock.advance(providers.FlowTTL + time.Second)
	clean(100, 1)
	w.clock.advance(sessions.SessionIdleTimeout)
	last := w.mustLogin(ada, password, in.User.UUID)
	clean(2, 4)   // two of each
	clean(100, 4) // the address of ada has a requested token, bob's has nothing
	clean(100, 0)
	if !w.valid(last.Token) || len(w.objects("Sessions")) != 1 || len(w.objects("Tokens")) != 0 {
		t.Errorf("%d sessions and %d tokens are left", len(w.objects("Sessions")), len(w.objects("Tokens")))
	}
}

// An expired session that is extended at the same time is kept.
func TestDeleteExpiredKeepsWhatIsInUse(t *testing.T) {
	w := newFixture(t)
	w.must(w.Registration.ResendValidation(t.Context(), "bob@example.com", from))
	other, _ := w.newService()
	w.clock.advance(8 * 24 * time.Hour)
	w.backend.onStep(onceAt(func(s step) bool {
		return s.store == "Tokens" && s.write != nil && s.write.Body == nil && !s.after
	}, func() {
		w.must(other.Registration.ResendValidation(t.Context(), "bob@example.com", from))
	}))
	if n := must(w.DeleteExpired(t.Context(), 100)); n != 0 || len(w.objects("Tokens")) != 1 {
		t.Errorf("%d removed", n)
	}
}

// A request can be so slow that its session ends meanwhile. It must not get a new
// session, not even by adding an address that the account has already.
func TestAnEndedSessionIsNotReplaced(t *testing.T) {
	w := newFixture(t)
	ended := w.register(ada, password)
	if _, err := w.Recovery.ChangePassword(t.Context(), password, "a new password",
		with(w.mustLogin(ada, password, ended.User.UUID))); err != nil {
		t.Fatal(err)
	}
	got, _, err := w.Registration.Register(t.Context(), credentials(ada, password), with(ended))
	w.wantKind(err, errs.Unauthenticated)
	if got.Token != "" {
		t.Error("an ended session was replaced by a new one")
	}
}
