package account_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/test/kit/authenticator"
)

const origin = "https://example.org"

func withPasskeys(o *account.Options) {
	o.Passkeys = &config.Passkeys{RPID: "example.org", RPName: "Example",
		Origins: []string{origin, "https://app.example.org"}}
}

// addPasskey adds the passkey of an authenticator to the account of a session.
func (w *fixture) addPasskey(c *authenticator.Credential, name string, me *sessions.Session,
	change ...func(*authenticator.Ceremony)) (passkeys.Info, error) {
	w.Helper()
	challenge, err := w.Passkeys.BeginRegistration(w.Context(), me)
	w.must(err)
	return w.Passkeys.Add(w.Context(), name,
		method.Signed{Credential: c.Create(challenge.Options, change...), Secret: challenge.Secret}, me)
}

// answer asks for the challenge of a login, and answers it.
func (w *fixture) answer(c *authenticator.Credential, change ...func(*authenticator.Ceremony)) method.Signed {
	w.Helper()
	challenge, err := w.Passkeys.BeginLogin(w.Context(), from)
	w.must(err)
	return method.Signed{Credential: c.Get(challenge.Options, change...), Secret: challenge.Secret}
}

func (w *fixture) loginByPasskey(c *authenticator.Credential,
	change ...func(*authenticator.Ceremony)) (sessions.Issued, error) {
	w.Helper()
	return w.LoginByPasskey(w.Context(), w.answer(c, change...), from)
}

// withPasskey is a fixture with a user who has a passkey.
func withPasskey(t *testing.T) (*fixture, sessions.Issued, *authenticator.Credential) {
	t.Helper()
	w := newFixture(t, withPasskeys)
	in, c := w.register(ada, password), authenticator.New(t, authenticator.ES256, origin)
	_, err := w.addPasskey(c, "Laptop", &in.Session)
	w.must(err)
	return w, in, c
}

func TestPasskeys(t *testing.T) {
	for name, algorithm := range map[string]int{"ES256": authenticator.ES256, "EdDSA": authenticator.EdDSA,
		"RS256": authenticator.RS256} {
		for _, format := range []string{"none", "packed"} {
			t.Run(name+" "+format, func(t *testing.T) {
				w := newFixture(t, withPasskeys)
				in, c := w.register(ada, password), authenticator.New(t, algorithm, origin)
				added, err := w.addPasskey(c, "Laptop", &in.Session,
					func(y *authenticator.Ceremony) { y.Format = format })
				w.must(err)
				if want := authenticator.Encode(c.ID) + "_passkey"; added.UUID != want || added.Name != "Laptop" ||
					added.LastUsed != "" || added.Created == "" {
					t.Errorf("added %+v", added)
				}
				w.clock.advance(time.Hour)
				session, err := w.loginByPasskey(c)
				w.must(err)
				if session.User.UUID != in.User.UUID || session.AAL != 2 ||
					!slices.Equal(session.Methods, []string{"passkey"}) || !w.valid(session.Token) {
					t.Errorf("logged in as %+v", session.Session)
				}
				list, err := w.Passkeys.List(t.Context(), &session.Session)
				w.must(err)
				if len(list) != 1 || list[0].LastUsed != object.FormatTime(w.clock.Now()) {
					t.Errorf("passkeys %+v", list)
				}
				if n := len(w.recorder.of(event.AuthFactorAdded, "Users")); n != 1 {
					t.Errorf("%d events of added factors", n)
				}
				for _, text := range []string{w.recorder.raw.String(), w.log.String()} {
					if strings.Contains(text, "publicKey") || strings.Contains(text, "_credential") {
						t.Errorf("the credential is in %s", text)
					}
				}
			})
		}
	}
}

func TestTheOptionsOfARegistration(t *testing.T) {
	w, in, c := withPasskey(t)
	challenge, err := w.Passkeys.BeginRegistration(t.Context(), &in.Session)
	w.must(err)
	var o struct {
		PublicKey struct {
			RP                 struct{ ID, Name string }
			User               struct{ ID, Name, DisplayName string }
			ExcludeCredentials []struct {
				ID         string
				Transports []string
			}
			AuthenticatorSelection struct{ ResidentKey, UserVerification string }
			Attestation            string
			Timeout                int
		}
	}
	w.must(json.Unmarshal(challenge.Options, &o))
	k := o.PublicKey
	if k.RP.ID != "example.org" || k.RP.Name != "Example" || k.User.Name != ada || k.User.DisplayName != ada ||
		k.Attestation != "none" || k.Timeout != 300000 ||
		k.AuthenticatorSelection.ResidentKey != "required" || k.AuthenticatorSelection.UserVerification != "required" {
		t.Errorf("options %s", challenge.Options)
	}
	if len(k.ExcludeCredentials) != 1 || k.ExcludeCredentials[0].ID != authenticator.Encode(c.ID) ||
		!slices.Equal(k.ExcludeCredentials[0].Transports, []string{"internal"}) {
		t.Errorf("excluded %+v", k.ExcludeCredentials)
	}
	if len(k.User.ID) != 43 || strings.Contains(string(challenge.Options), in.User.UUID) ||
		strings.Contains(string(challenge.Options), challenge.Secret) {
		t.Errorf("the handle %s, or the secret, is in %s", k.User.ID, challenge.Options)
	}
}

// The options of a login are of nobody.
func TestALoginAsksForNoPasskeyInParticular(t *testing.T) {
	w, _, _ := withPasskey(t)
	challenge, err := w.Passkeys.BeginLogin(t.Context(), from)
	w.must(err)
	options, err := object.Decode(object.Field(challenge.Options, "publicKey"))
	w.must(err)
	delete(options, "challenge")
	if got := string(options.Encode()); got != `{"rpId":"example.org","timeout":300000,"userVerification":"required"}` {
		t.Errorf("options %s", got)
	}
}

func TestPasskeysAreNamedAndRemoved(t *testing.T) {
	w, in, c := withPasskey(t)
	me := &in.Session
	second, err := w.addPasskey(authenticator.New(t, authenticator.ES256, "https://app.example.org"), "", me)
	w.must(err)
	if second.Name != "Passkey" {
		t.Errorf("the name is %q", second.Name)
	}
	renamed, err := w.Passkeys.Rename(t.Context(), me, second.UUID, "Key ring")
	w.must(err)
	if renamed.Name != "Key ring" || renamed.UUID != second.UUID {
		t.Errorf("renamed %+v", renamed)
	}
	for _, name := range []string{"", " x", "a\nb", strings.Repeat("x", 101), "\xff"} {
		_, err := w.Passkeys.Rename(t.Context(), me, second.UUID, name)
		w.wantKind(err, errs.Invalid)
	}
	bob := w.register("bob@example.com", password)
	for _, not := range []string{second.UUID, adaIdent, "none", ".", ""} {
		_, err := w.Passkeys.Rename(t.Context(), &bob.Session, not, "mine")
		w.wantKind(err, errs.NotFound)
		w.wantKind(w.Links.Unlink(t.Context(), &bob.Session, not), errs.NotFound)
	}
	details, err := w.Admin.AccountDetails(t.Context(), in.User.Stored)
	w.must(err)
	if !slices.ContainsFunc(details.Idents,
		func(i admin.IdentInfo) bool { return i.Type == "passkey" && i.Name == "Key ring" }) {
		t.Errorf("admins see %+v", details.Idents)
	}

	// Passkeys count as logins: all but the last one can be removed.
	w.must(w.Links.Unlink(t.Context(), me, adaIdent))
	w.must(w.Links.Unlink(t.Context(), me, second.UUID))
	w.wantKind(w.Links.Unlink(t.Context(), me, authenticator.Encode(c.ID)+"_passkey"), errs.Conflict)
	if n := len(w.recorder.of(event.AuthFactorRemoved, "Users")); n != 1 {
		t.Errorf("%d events of removed factors", n)
	}
	_, err = w.loginByPasskey(c)
	w.must(err)
}

// A stolen session must not become a permanent login, nor take one away.
func TestPasskeysNeedAFreshLogin(t *testing.T) {
	w, in, c := withPasskey(t)
	own := authenticator.Encode(c.ID) + "_passkey"
	challenge, err := w.Passkeys.BeginRegistration(t.Context(), &in.Session)
	w.must(err)
	_, token, err := w.Keys.Create(t.Context(), keys.New{Name: "k"}, password, with(in))
	w.must(err)
	key, err := w.Sessions.Authenticate(t.Context(), token)
	w.must(err)
	_, err = w.Passkeys.BeginRegistration(t.Context(), key)
	w.wantKind(err, errs.Denied)
	_, err = w.Passkeys.Rename(t.Context(), key, own, "x")
	w.wantKind(err, errs.Denied)
	answer := method.Signed{Credential: authenticator.New(t, authenticator.ES256, origin).Create(challenge.Options),
		Secret: challenge.Secret}
	_, err = w.Passkeys.Add(t.Context(), "", answer, key)
	w.wantKind(err, errs.Denied)

	w.clock.advance(11 * time.Minute)
	_, err = w.Passkeys.BeginRegistration(t.Context(), &in.Session)
	w.wantKind(err, errs.Unauthenticated)
	w.wantKind(w.Links.Unlink(t.Context(), &in.Session, own), errs.Unauthenticated)
	session, err := w.loginByPasskey(c)
	w.must(err)
	w.must(w.Links.Unlink(t.Context(), &session.Session, own))
}

func TestAChallengeIsForOneClientOnePurposeAndOneUse(t *testing.T) {
	w, in, c := withPasskey(t)
	me := &in.Session
	other := w.mustLogin(ada, password, in.User.UUID)
	bob := w.register("bob@example.com", password)
	login := w.answer(c)
	registration, err := w.Passkeys.BeginRegistration(t.Context(), me)
	w.must(err)
	fresh := authenticator.New(t, authenticator.ES256, origin)
	second, err := w.SecondFactorOptions(t.Context(), in.User, "pending")
	w.must(err)
	stepUp, err := w.StepUpOptions(t.Context(), me)
	w.must(err)
	answers := map[string]method.Signed{
		"login":         login,
		"second factor": {Credential: c.Get(second.Options), Secret: second.Secret},
		"step-up":       {Credential: c.Get(stepUp.Options), Secret: stepUp.Secret},
		"registration":  {Credential: c.Get(registration.Options), Secret: registration.Secret},
	}
	uses := map[string]func(method.Signed) error{
		"login": func(a method.Signed) error {
			_, err := w.LoginByPasskey(t.Context(), a, from)
			return err
		},
		"second factor": func(a method.Signed) error {
			_, _, err := w.VerifySecondFactor(t.Context(), a, in.User, "pending")
			return err
		},
		"another second factor": func(a method.Signed) error {
			_, _, err := w.VerifySecondFactor(t.Context(), a, in.User, "another")
			return err
		},
		"step-up":             func(a method.Signed) error { return w.VerifyStepUp(t.Context(), a, me) },
		"another's step-up":   func(a method.Signed) error { return w.VerifyStepUp(t.Context(), a, &bob.Session) },
		"another session's":   func(a method.Signed) error { return w.VerifyStepUp(t.Context(), a, &other.Session) },
		"another client's":    func(a method.Signed) error { a.Secret = w.answer(c).Secret; return w.byPasskey(a) },
		"no client's":         func(a method.Signed) error { a.Secret = ""; return w.byPasskey(a) },
		"an unknown client's": func(a method.Signed) error { a.Secret = account.NewSecret(); return w.byPasskey(a) },
	}
	for made, a := range answers {
		for use, verify := range uses {
			if use != made {
				w.wantKind(verify(a), errs.Denied)
			}
		}
	}
	for use, verify := range uses { // which the attempts before have left good
		if a, ok := answers[use]; ok {
			w.must(verify(a))
			w.wantKind(verify(a), errs.Denied)
		}
	}
	// A registration is for the session that asked.
	answer := method.Signed{Credential: fresh.Create(registration.Options), Secret: registration.Secret}
	for _, not := range []*sessions.Session{&other.Session, &bob.Session} {
		_, err = w.Passkeys.Add(t.Context(), "", answer, not)
		w.wantKind(err, errs.Denied)
	}
	_, err = w.Passkeys.Add(t.Context(), "", answer, me)
	w.must(err)
	_, err = w.Passkeys.Add(t.Context(), "", answer, me)
	w.wantKind(err, errs.Denied)

	late := w.answer(c)
	w.clock.advance(passkeys.TTL)
	w.wantKind(w.byPasskey(late), errs.Denied)
}

func (w *fixture) byPasskey(a method.Signed) error {
	_, err := w.LoginByPasskey(w.Context(), a, from)
	return err
}

func TestAWrongAnswerLogsNobodyIn(t *testing.T) {
	w, in, c := withPasskey(t)
	bob := w.register("bob@example.com", password)
	bobs := authenticator.New(t, authenticator.ES256, origin)
	_, err := w.addPasskey(bobs, "", &bob.Session)
	w.must(err)
	for name, change := range map[string]func(*authenticator.Ceremony){
		"user not verified":       func(y *authenticator.Ceremony) { y.Flags &^= authenticator.UserVerified },
		"user not present":        func(y *authenticator.Ceremony) { y.Flags &^= authenticator.UserPresent },
		"became backup eligible":  func(y *authenticator.Ceremony) { y.Flags |= authenticator.BackupEligible },
		"backed up, not eligible": func(y *authenticator.Ceremony) { y.Flags |= authenticator.BackedUp },
		"another origin":          func(y *authenticator.Ceremony) { y.Origin = "https://evil.example" },
		"a subdomain":             func(y *authenticator.Ceremony) { y.Origin = "https://evil.example.org" },
		"http":                    func(y *authenticator.Ceremony) { y.Origin = "http://example.org" },
		"another port":            func(y *authenticator.Ceremony) { y.Origin = "https://example.org:8443" },
		"within another page":     func(y *authenticator.Ceremony) { y.CrossOrigin = true },
		"another RP ID":           func(y *authenticator.Ceremony) { y.RPID = "evil.example" },
		"a registration":          func(y *authenticator.Ceremony) { y.Type = "webauthn.create" },
		"another challenge": func(y *authenticator.Ceremony) {
			y.Challenge = authenticator.Encode(make([]byte, 32))
		},
		"no user handle":          func(y *authenticator.Ceremony) { y.UserHandle = nil },
		"another user handle":     func(y *authenticator.Ceremony) { y.UserHandle = []byte(in.User.UUID) },
		"another's credential":    func(y *authenticator.Ceremony) { y.ID = bobs.ID },
		"an unknown credential":   func(y *authenticator.Ceremony) { y.ID = []byte("unknown") },
		"the id of another ident": func(y *authenticator.Ceremony) { y.ID = []byte(ada) },
		"a wrong signature": func(y *authenticator.Ceremony) {
			y.Signature = func(s []byte) []byte { s[len(s)-1] ^= 1; return s }
		},
		"no signature": func(y *authenticator.Ceremony) { y.Signature = func([]byte) []byte { return nil } },
		"a longer signature": func(y *authenticator.Ceremony) {
			y.Signature = func(s []byte) []byte { return append(s, 0) }
		},
		"a signature of zero": func(y *authenticator.Ceremony) {
			y.Signature = func([]byte) []byte { return []byte{48, 6, 2, 1, 0, 2, 1, 0} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.loginByPasskey(c, change)
			if errs.KindOf(err) != errs.Denied {
				t.Errorf("error %v", err)
			}
		})
	}
	// Known and unknown credentials are replied to alike.
	_, known := w.loginByPasskey(c, func(y *authenticator.Ceremony) { y.Type = "webauthn.create" })
	_, unknown := w.loginByPasskey(authenticator.New(t, authenticator.ES256, origin))
	if a, b := known.Error(), unknown.Error(); !strings.HasPrefix(a, b) {
		t.Errorf("%q and %q", a, b)
	}
	w.Close()
	if n := len(w.recorder.of(event.AuthLoginFailed, "Users")); n == 0 {
		t.Error("a failed login is no event")
	}
	_, err = w.loginByPasskey(c)
	w.must(err)
}

func TestAWrongPasskeyIsNotRegistered(t *testing.T) {
	w, in, c := withPasskey(t)
	fresh := func() *authenticator.Credential { return authenticator.New(t, authenticator.ES256, origin) }
	for name, change := range map[string]func(*authenticator.Ceremony){
		"user not verified":       func(y *authenticator.Ceremony) { y.Flags &^= authenticator.UserVerified },
		"user not present":        func(y *authenticator.Ceremony) { y.Flags &^= authenticator.UserPresent },
		"backed up, not eligible": func(y *authenticator.Ceremony) { y.Flags |= authenticator.BackedUp },
		"another origin":          func(y *authenticator.Ceremony) { y.Origin = "https://example.org.evil.example" },
		"within another page":     func(y *authenticator.Ceremony) { y.CrossOrigin = true },
		"another RP ID":           func(y *authenticator.Ceremony) { y.RPID = "app.example.org" },
		"a login":                 func(y *authenticator.Ceremony) { y.Type = "webauthn.get" },
		"another challenge":       func(y *authenticator.Ceremony) { y.Challenge = authenticator.Encode(make([]byte, 32)) },
		"an attestation": func(y *authenticator.Ceremony) {
			y.Format, y.Statement = "fido-u2f", map[string]any{"sig": []byte{1}}
		},
		"a statement of none": func(y *authenticator.Ceremony) { y.Statement = map[string]any{"sig": []byte{1}} },
		"a wrong statement": func(y *authenticator.Ceremony) {
			y.Format, y.Statement = "packed",
				map[string]any{"alg": authenticator.ES256, "sig": []byte{48, 6, 2, 1, 1, 2, 1, 1}}
		},
		"an unknown attestation": func(y *authenticator.Ceremony) { y.Format = "made-up" },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.addPasskey(fresh(), "", &in.Session, change)
			if errs.KindOf(err) != errs.Denied {
				t.Errorf("error %v", err)
			}
		})
	}
	// A key is for the algorithm that its type has, and for one that was offered.
	for _, algorithm := range []int{-35, -36, -37, -65535, authenticator.RS256, authenticator.EdDSA, 5} {
		f := fresh()
		_, err := w.addPasskey(f, "", &in.Session,
			func(y *authenticator.Ceremony) { y.Key = f.PublicKeyFor(algorithm) })
		if err == nil {
			_, err = w.loginByPasskey(f)
		}
		if err == nil {
			t.Errorf("a key for algorithm %d logs in", algorithm)
		}
	}
	// A credential belongs to one user, and is registered once, whatever key comes with its id.
	bob := w.register("bob@example.com", password)
	for _, who := range []*sessions.Session{&in.Session, &bob.Session} {
		other := fresh()
		other.ID = c.ID
		_, err := w.addPasskey(other, "", who)
		w.wantKind(err, errs.Exists)
	}
	session, err := w.loginByPasskey(c)
	w.must(err)
	if session.User.UUID != in.User.UUID {
		t.Error("the passkey has another user")
	}
	_, err = w.Passkeys.Add(t.Context(), "", method.Signed{Credential: json.RawMessage(`{"id":"x"}`)}, &in.Session)
	w.wantKind(err, errs.Invalid)
}

// At most one of concurrent answers counts.
func TestConcurrentPasskeys(t *testing.T) {
	w, _, c := withPasskey(t)
	once := func(n int, do func(i int) error, kinds ...errs.Kind) {
		t.Helper()
		var done atomic.Int32
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				err := do(i)
				if err == nil {
					done.Add(1)
				}
				w.allowKinds(err, kinds...)
			})
		}
		group.Wait()
		if done.Load() != 1 {
			t.Errorf("%d of %d succeeded", done.Load(), n)
		}
	}
	// The same answer.
	replayed := w.answer(c)
	once(8, func(int) error { return w.byPasskey(replayed) }, errs.Denied)

	// Answers to different challenges with the same counter.
	var equal []method.Signed
	for range 8 {
		equal = append(equal, w.answer(c, func(y *authenticator.Ceremony) { y.Counter = 7 }))
	}
	once(8, func(i int) error { return w.byPasskey(equal[i]) }, errs.Denied)

	// Registrations of one credential by several users.
	shared := authenticator.New(t, authenticator.ES256, origin)
	var users []sessions.Issued
	var registrations []method.Signed
	for _, login := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		u := w.register(login, password)
		challenge, err := w.Passkeys.BeginRegistration(t.Context(), &u.Session)
		w.must(err)
		users, registrations = append(users, u),
			append(registrations, method.Signed{Credential: shared.Create(challenge.Options), Secret: challenge.Secret})
	}
	once(len(users), func(i int) error {
		_, err := w.Passkeys.Add(t.Context(), "", registrations[i], &users[i].Session)
		return err
	}, errs.Exists)
}

func TestASignatureCounterThatGoesBack(t *testing.T) {
	w := newFixture(t, withPasskeys)
	in, c := w.register(ada, password), authenticator.New(t, authenticator.ES256, origin)
	c.Counter = 5
	added, err := w.addPasskey(c, "Key", &in.Session)
	w.must(err)
	_, err = w.loginByPasskey(c) // 6
	w.must(err)
	for _, counter := range []uint32{6, 5, 1, 0} {
		_, err = w.loginByPasskey(c, func(y *authenticator.Ceremony) { y.Counter = counter })
		w.wantKind(err, errs.Denied)
		if !strings.Contains(err.Error(), "signature counter") {
			t.Errorf("%d: %v", counter, err)
		}
	}
	suspected := w.recorder.of(event.AuthCloneSuspected, "Users")
	if len(suspected) != 4 || suspected[0].UUID != in.User.UUID ||
		!strings.Contains(string(suspected[0].Auth), added.UUID) {
		t.Errorf("events %+v", suspected)
	}
	list, err := w.Passkeys.List(t.Context(), &in.Session)
	w.must(err)
	details, err := w.Admin.AccountDetails(t.Context(), in.User.Stored)
	w.must(err)
	if list[0].CloneSuspected == "" ||
		!slices.ContainsFunc(details.Idents, func(i admin.IdentInfo) bool { return i.CloneSuspected != "" }) {
		t.Errorf("the user sees %+v, admins %+v", list, details.Idents)
	}
	// It is a sign and no proof: the one with the higher counter continues.
	c.Counter = 100
	_, err = w.loginByPasskey(c)
	w.must(err)
}

func TestPasskeysOfUsersWhoMayNotLogIn(t *testing.T) {
	w, in, c := withPasskey(t)
	_, err := w.Admin.SetDisabled(t.Context(), in.User.UUID, true)
	w.must(err)
	_, err = w.loginByPasskey(c)
	w.wantKind(err, errs.Denied)
	_, err = w.Admin.SetDisabled(t.Context(), in.User.UUID, false)
	w.must(err)
	w.must(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
	_, err = w.loginByPasskey(c)
	w.wantKind(err, errs.Denied)
	w.cascade()
	_, err = w.loginByPasskey(c)
	w.wantKind(err, errs.Denied)
	// The credential is free again.
	bob := w.register("bob@example.com", password)
	_, err = w.addPasskey(c, "", &bob.Session)
	w.must(err)
}

func TestARecoveryByAStrangersAccountRemovesItsPasskeys(t *testing.T) {
	w, in, c := withPasskey(t) // whoever registered did not prove the address
	w.must(w.Recovery.Request(t.Context(), ada, from))
	recovery := credentials(ada, "another password")
	recovery.Token = w.lastMail(ada).token
	w.must(w.Recovery.Recover(t.Context(), recovery, from))
	_, err := w.loginByPasskey(c)
	w.wantKind(err, errs.Denied)
	w.mustLogin(ada, "another password", in.User.UUID)
}

func TestASecondFactorIsAPasskeyOfThatUser(t *testing.T) {
	w, in, c := withPasskey(t)
	bob := w.register("bob@example.com", password)
	_, err := w.SecondFactorOptions(t.Context(), bob.User, "x")
	w.wantKind(err, errs.NotFound)
	options, err := w.SecondFactorOptions(t.Context(), in.User, "x")
	w.must(err)
	if !strings.Contains(string(options.Options), authenticator.Encode(c.ID)) {
		t.Errorf("options %s", options.Options)
	}
	// An authenticator that was asked for certain credentials need not say whose they are.
	answer := method.Signed{Credential: c.Get(options.Options, func(y *authenticator.Ceremony) { y.UserHandle = nil }),
		Secret: options.Secret}
	by, ident, err := w.VerifySecondFactor(t.Context(), answer, in.User, "x")
	w.must(err)
	if by.UUID != in.User.UUID || ident.UUID != authenticator.Encode(c.ID)+"_passkey" {
		t.Errorf("%s by %s", by.UUID, ident.UUID)
	}
	bobs := authenticator.New(t, authenticator.ES256, origin)
	_, err = w.addPasskey(bobs, "", &bob.Session)
	w.must(err)
	options, err = w.SecondFactorOptions(t.Context(), in.User, "x")
	w.must(err)
	_, _, err = w.VerifySecondFactor(t.Context(),
		method.Signed{Credential: bobs.Get(options.Options), Secret: options.Secret}, in.User, "x")
	w.wantKind(err, errs.Denied)
}

func TestWithoutPasskeys(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	_, err := w.Passkeys.BeginLogin(t.Context(), from)
	w.wantKind(err, errs.NotFound)
	_, err = w.Passkeys.BeginRegistration(t.Context(), &in.Session)
	w.wantKind(err, errs.NotFound)
	w.wantKind(w.byPasskey(method.Signed{}), errs.NotFound)
}

// The test vectors of the specification (Web Authentication Level 3, section 16), which have been signed by others than
// belfry's tests.
func TestVectorsOfTheSpecification(t *testing.T) {
	w := newFixture(t, withPasskeys)
	text, err := os.ReadFile(filepath.Join("testdata", "webauthn-vectors.json"))
	w.must(err)
	var vectors []struct {
		Name                    string
		Challenges              [2]string
		Registration, Assertion json.RawMessage
	}
	w.must(json.Unmarshal(text, &vectors))
	want := map[string][2]string{ // parts of the errors: most vectors verify no user
		"NoneES256":                 {"does not match", ""},
		"PackedSelfES256":           {"", "Error"},
		"NoneES256CrossOrigin":      {"does not match", ""},
		"NoneES256TopOrigin":        {"does not match", ""},
		"NoneES256LongCredentialID": {"does not match", ""},
		"PackedES256Full":           {"", ""},
		"PackedRS256":               {"", "Error"},
		"PackedEdDSA":               {"does not match", ""},
		"PackedES384":               {"does not match", ""},
		"TPMES256":                  {"was not requested", ""},
		"FIDOU2FES256":              {"was not requested", ""},
	}
	for _, v := range vectors {
		registered, loggedIn := w.VerifyVector(v.Registration, v.Assertion, v.Challenges[0], v.Challenges[1], "nobody")
		for i, got := range []error{registered, loggedIn} {
			if expected := want[v.Name][i]; (got == nil) != (expected == "") ||
				got != nil && !strings.Contains(got.Error(), expected) {
				t.Errorf("%s, step %d: %v, want %q", v.Name, i, got, expected)
			}
		}
	}
	if len(vectors) != len(want) {
		t.Errorf("%d vectors", len(vectors))
	}
}

// No bytes end a process, or log anybody in.
func FuzzPasskeys(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "webauthn-vectors.json"))
	if err != nil {
		f.Fatal(err)
	}
	var vectors []struct{ Registration, Assertion json.RawMessage }
	if err := json.Unmarshal(text, &vectors); err != nil {
		f.Fatal(err)
	}
	for _, v := range vectors {
		f.Add([]byte(v.Registration))
		f.Add([]byte(v.Assertion))
	}
	f.Add([]byte(
		`{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"","signature":""}}`))
	s := account.New(account.Options{Passkeys: &config.Passkeys{RPID: "example.org", Origins: []string{origin}}})
	f.Fuzz(func(t *testing.T, credential []byte) {
		registered, loggedIn := s.VerifyVector(credential, credential, "x", "x", "nobody")
		if registered == nil && loggedIn == nil {
			t.Error("accepted")
		}
	})
}
