package account_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"image/png"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"belfry/internal/seal"
	"belfry/pkg/account"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// totpCode is the code of an authenticator app at the fixture's time and some steps later.
func (w *fixture) totpCode(secret string, steps int) string {
	w.Helper()
	code, err := totp.GenerateCode(secret, w.clock.Now().Add(time.Duration(steps)*30*time.Second))
	w.must(err)
	return code
}

// enrolled is a user with an authenticator app.
type enrolled struct {
	sessions.Issued
	secret string
	codes  []string
}

// enroll sets up an authenticator app in a session.
func (w *fixture) enroll(in sessions.Issued) enrolled {
	w.Helper()
	e, err := w.Enrollment.Begin(w.Context(), &in.Session, record.FactorTOTP)
	w.must(err)
	session, codes, err := w.Enrollment.Confirm(w.Context(), record.FactorTOTP, w.totpCode(e.Secret, 0), with(in))
	w.must(err)
	w.clock.advance(time.Minute) // the code was used
	return enrolled{session, e.Secret, codes}
}

// beginLogin logs in by password and returns the login whose second factor is missing.
func (w *fixture) beginLogin(login string) *logins.PendingLogin {
	w.Helper()
	in, err := w.Login.Login(w.Context(), credentials(login, password), from)
	p := logins.Pending(err)
	if p == nil || errs.KindOf(err) != errs.Unauthenticated || in.Token != "" || in.Code != "" {
		w.Fatalf("the login is complete without the second factor: %v", err)
	}
	return p
}

func totpFactor(code string) method.Answer {
	return method.Answer{Type: record.FactorTOTP, Code: code}
}

func recoveryFactor(code string) method.Answer {
	return method.Answer{Type: record.FactorRecovery, Code: code}
}

// wantStep fails unless an error says that a step is missing.
func (w *fixture) wantStep(err error, step string) {
	w.Helper()
	var missing *errs.StepUp
	if errs.KindOf(err) != errs.Unauthenticated || !errors.As(err, &missing) || missing.Step != step {
		w.Fatalf("error %v, want one that asks for the step %s", err, step)
	}
}

func TestALoginNeedsTheSecondFactorThatWasAdded(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	if in.AAL != 1 || !slices.Equal(in.Methods, []string{record.MethodPassword}) {
		t.Errorf("the session of a registration: %+v", in.Session)
	}
	e, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
	w.must(err)
	if picture, err := png.Decode(bytes.NewReader(e.PNG)); err != nil || picture.Bounds().Dx() < 100 {
		t.Errorf("the QR code: %v", err)
	}
	for _, part := range []string{"otpauth://totp/example.org:ada@example.com?", "secret=" + e.Secret,
		"issuer=example.org"} {
		if !strings.Contains(e.URI, part) {
			t.Errorf("%s lacks %s", e.URI, part)
		}
	}
	w.mustLogin(ada, password, in.User.UUID) // it is not confirmed yet
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, "000000", with(in))
	w.wantKind(err, errs.Denied)
	raised, codes, err := w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(e.Secret, 0), with(in))
	w.must(err)
	w.Close()
	if w.valid(in.Token) || !w.valid(raised.Token) || raised.AAL != 2 || len(codes) != 10 {
		t.Errorf("after the confirmation: the old session is valid: %v; %+v, %d codes", w.valid(in.Token),
			raised.Session, len(codes))
	}
	info := w.Enrollment.Factors(t.Context(), &raised.Session)
	if len(info.Factors) != 1 || info.Factors[0].Type != record.FactorTOTP || info.RecoveryCodes != 10 ||
		info.Policy != sessions.MFAOptional {
		t.Errorf("%+v", info)
	}

	w.clock.advance(time.Minute)
	p := w.beginLogin(ada)
	if !slices.Equal(p.Factors, []string{record.FactorTOTP, record.FactorRecovery}) {
		t.Errorf("the login can be completed by %v", p.Factors)
	}
	second, err := w.Login.CompleteLogin(t.Context(), p.Secret, totpFactor(w.totpCode(e.Secret, 0)), from)
	w.must(err)
	session, err := w.Sessions.Authenticate(t.Context(), second.Token)
	w.must(err)
	if session.AAL != 2 || !slices.Equal(session.Methods, []string{"password", "totp"}) || session.Type != "email" ||
		!session.AuthenticatedAt.Equal(w.clock.Now()) {
		t.Errorf("%+v", session)
	}
	w.must(w.Enrollment.Remove(t.Context(), session, record.FactorTOTP))
	w.mustLogin(ada, password, in.User.UUID)
	if f := w.record("Users", in.User.UUID)["_factors"]; f != nil {
		t.Errorf("left after the last factor: %s", f)
	}
	want := []event.Name{event.AuthLoggedIn, event.AuthLoggedIn, event.AuthLoginFailed, event.AuthFactorAdded,
		event.AuthSteppedUp, event.AuthLoggedIn, event.AuthFactorRemoved, event.AuthLoggedIn}
	if got := w.audited(in.User.UUID); !slices.Equal(got, want) {
		t.Errorf("events %v\nwant %v", got, want)
	}
	w.Close() // the uses of idents are recorded in the background
	for _, secret := range append([]string{e.Secret, p.Secret, second.Token, w.totpCode(e.Secret, 0)}, codes...) {
		if strings.Contains(w.recorder.raw.String(), secret) || strings.Contains(w.log.String(), secret) {
			t.Errorf("%q is in an event or the log", secret)
		}
	}
}

// audited returns the names of the events about a user's account.
func (w *fixture) audited(user string) (names []event.Name) {
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	for _, e := range w.recorder.all {
		// A session that is replaced ends in the background.
		if slices.Contains(event.Auth(), e.Event) && e.Event != event.AuthLoggedOut && e.Store == "Users" &&
			e.UUID == user {
			names = append(names, e.Event)
		}
	}
	return names
}

// A code is accepted within one step of 30 seconds, and once, whatever it was accepted for.
func TestACodeOfAnAppIsAcceptedOnce(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	e, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
	w.must(err)
	code := w.totpCode(e.Secret, 0)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, code, with(in))
	w.must(err)
	complete := func(code string, want errs.Kind) {
		t.Helper()
		_, err := w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(code), from)
		if want == 0 {
			w.must(err)
			return
		}
		w.wantKind(err, want)
	}
	complete(code, errs.Denied) // that of the confirmation
	w.clock.advance(10 * time.Minute)
	complete(w.totpCode(e.Secret, -2), errs.Denied)
	complete(w.totpCode(e.Secret, 2), errs.Denied)
	complete(w.totpCode(e.Secret, -1), 0)
	complete(w.totpCode(e.Secret, -1), errs.Denied)
	complete(w.totpCode(e.Secret, 1), 0)
	complete(w.totpCode(e.Secret, 0), errs.Denied) // older than the last one
	complete("", errs.Denied)
}

func TestOfConcurrentLoginsWithOneCodeOneSucceeds(t *testing.T) {
	for range 5 {
		w := newFixture(t, limits(0, 100))
		e := w.enroll(w.register(ada, password))
		secrets := make([]string, 8)
		for i := range secrets {
			secrets[i] = w.beginLogin(ada).Secret
		}
		for _, factor := range []method.Answer{totpFactor(w.totpCode(e.secret, 0)), recoveryFactor(e.codes[3])} {
			var succeeded atomic.Int32
			concurrently(w.twoServices(), len(secrets), func(i int, s *account.Service) {
				_, err := s.Login.CompleteLogin(t.Context(), secrets[i], factor, from)
				w.allowKinds(err, errs.Denied, errs.Unauthenticated, errs.Conflict)
				if err == nil {
					succeeded.Add(1)
				}
			})
			if succeeded.Load() != 1 {
				t.Fatalf("%d logins with one %s code", succeeded.Load(), factor.Type)
			}
		}
	}
}

func TestOfConcurrentCompletionsOfOneLoginOneSucceeds(t *testing.T) {
	w := newFixture(t, limits(0, 100))
	e := w.enroll(w.register(ada, password))
	p := w.beginLogin(ada)
	var succeeded atomic.Int32
	concurrently(w.twoServices(), 5, func(i int, s *account.Service) {
		_, err := s.Login.CompleteLogin(t.Context(), p.Secret, recoveryFactor(e.codes[i]), from)
		w.allowKinds(err, errs.Denied, errs.Unauthenticated, errs.Conflict)
		if err == nil {
			succeeded.Add(1)
		}
	})
	if succeeded.Load() != 1 {
		t.Fatalf("%d sessions of one login", succeeded.Load())
	}
}

func TestARecoveryCodeWorksOnceAndEndsWithNewOnes(t *testing.T) {
	w := newFixture(t)
	e := w.enroll(w.register(ada, password))
	complete := func(code string) error {
		_, err := w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, recoveryFactor(code), from)
		return err
	}
	w.must(complete(strings.ToLower(strings.ReplaceAll(e.codes[0], "-", " "))))
	w.wantKind(complete(e.codes[0]), errs.Denied)
	w.wantKind(complete("AAAA-BBBB-CCCC-DDDD"), errs.Denied)
	fresh, err := w.Enrollment.RenewRecoveryCodes(t.Context(), &e.Session)
	w.must(err)
	w.wantKind(complete(e.codes[1]), errs.Denied)
	w.must(complete(fresh[9]))
	if stored := string(w.record("Users", e.User.UUID)["_factors"]); strings.Contains(stored, fresh[0]) ||
		strings.Contains(stored, strings.ReplaceAll(fresh[0], "-", "")) {
		t.Error("a recovery code is stored as it is")
	}

	bob := w.register("bob@example.com", password)
	_, err = w.Enrollment.RenewRecoveryCodes(t.Context(), &bob.Session)
	w.wantKind(err, errs.Conflict)
	other := w.enroll(bob)
	_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, recoveryFactor(other.codes[0]), from)
	w.wantKind(err, errs.Denied)
}

// Codes are short: they can't be found by trying, whatever process and login the tries are made in.
func TestWrongCodesAreLimited(t *testing.T) {
	w := newFixture(t, limits(0, 4))
	e := w.enroll(w.register(ada, password))
	services := w.twoServices()
	wrong, limited := 0, 0
	for i := range 12 {
		_, err := services[i%2].Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor("12345"), from)
		switch errs.KindOf(err) {
		case errs.Denied:
			wrong++
		case errs.Limited:
			limited++
		default:
			t.Fatal(err)
		}
	}
	if wrong != 4 || limited != 8 {
		t.Errorf("%d codes were compared, and %d not", wrong, limited)
	}
	w.clock.advance(2 * time.Second)
	in, err := w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(e.secret, 0)), from)
	w.must(err)
	if in.User.UUID != e.User.UUID {
		t.Errorf("logged in as %s", in.User.UUID)
	}
}

func TestALoginEndsAfterFiveTries(t *testing.T) {
	w := newFixture(t, limits(0, 100))
	e := w.enroll(w.register(ada, password))
	p := w.beginLogin(ada)
	for range 5 {
		_, err := w.Login.CompleteLogin(t.Context(), p.Secret, totpFactor("12345"), from)
		w.wantKind(err, errs.Denied)
	}
	_, err := w.Login.CompleteLogin(t.Context(), p.Secret, totpFactor(w.totpCode(e.secret, 0)), from)
	w.wantKind(err, errs.Unauthenticated)
}

func TestALoginIsCompletedByWhoHasBegunItAndInTime(t *testing.T) {
	w := newFixture(t)
	e := w.enroll(w.register(ada, password))
	complete := func(secret string) error {
		_, err := w.Login.CompleteLogin(t.Context(), secret, recoveryFactor(e.codes[0]), from)
		return err
	}
	p := w.beginLogin(ada)
	for _, secret := range []string{"", "wrong", p.Secret[1:], p.Secret + "A"} {
		w.wantKind(complete(secret), errs.Unauthenticated)
	}
	w.clock.advance(logins.PendingTTL)
	w.wantKind(complete(p.Secret), errs.Unauthenticated)

	p = w.beginLogin(ada)
	_, err := w.Admin.EndSessions(t.Context(), e.User.UUID)
	w.must(err)
	w.wantKind(complete(p.Secret), errs.Unauthenticated)

	p = w.beginLogin(ada)
	_, err = w.Admin.SetDisabled(t.Context(), e.User.UUID, true)
	w.must(err)
	if err := complete(p.Secret); !errors.Is(err, sessions.ErrDisabled) {
		t.Errorf("a disabled user: %v", err)
	}
	_, err = w.Admin.SetDisabled(t.Context(), e.User.UUID, false)
	w.must(err)
	w.wantKind(complete(p.Secret), errs.Unauthenticated)

	p = w.beginLogin(ada)
	w.must(complete(p.Secret))
	w.wantKind(complete(p.Secret), errs.Unauthenticated)
}

// A stolen session must not become a permanent login: what protects the account changes after a recent login with all
// factors alone.
func TestAnOldOrWeakSessionChangesNoFactors(t *testing.T) {
	w := newFixture(t)
	stolen := w.register(ada, password)
	everything := func(in sessions.Issued, step string) {
		t.Helper()
		_, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
		w.wantStep(err, step)
		_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, "123456", with(in))
		w.wantStep(err, step)
		_, err = w.Enrollment.RenewRecoveryCodes(t.Context(), &in.Session)
		w.wantStep(err, step)
		w.wantStep(w.Enrollment.Remove(t.Context(), &in.Session, record.FactorTOTP), step)
		w.wantStep(w.Links.Unlink(t.Context(), &in.Session, ada+"_email"), step)
	}
	w.clock.advance(10*time.Minute + time.Second)
	everything(stolen, errs.StepReauthenticate)

	weak := w.mustLogin(ada, password, stolen.User.UUID)
	e := w.enroll(w.mustLogin(ada, password, stolen.User.UUID))
	now, err := w.Sessions.Authenticate(t.Context(), weak.Token) // as requests read it
	w.must(err)
	weak.Session = *now
	everything(weak, errs.StepSecondFactor)
	_, _, err = w.Keys.Create(t.Context(), keys.New{Name: "key"}, password, with(weak))
	w.wantStep(err, errs.StepSecondFactor)
	_, err = w.Recovery.ChangePassword(t.Context(), password, "another fine password", with(weak))
	w.wantStep(err, errs.StepSecondFactor)

	_, err = w.StepUp.StepUp(t.Context(), password, method.Answer{}, with(weak))
	w.wantKind(err, errs.Denied) // the password is no second factor
	raised, err := w.StepUp.StepUp(t.Context(), "", totpFactor(w.totpCode(e.secret, 0)), with(weak))
	w.must(err)
	w.Close()
	if raised.AAL != 2 || w.valid(weak.Token) {
		t.Errorf("after the step: %+v; the old token is valid: %v", raised.Session, w.valid(weak.Token))
	}
	w.must(w.Enrollment.Remove(t.Context(), &raised.Session, record.FactorTOTP))
	w.wantKind(w.Enrollment.Remove(t.Context(), &raised.Session, record.FactorTOTP), errs.NotFound)
	w.wantKind(w.Enrollment.Remove(t.Context(), &raised.Session, record.FactorRecovery), errs.NotFound)
}

func TestAPasswordRenewsASession(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.clock.advance(time.Hour)
	for _, wrong := range []string{"", "a wrong password"} {
		if _, err := w.StepUp.StepUp(t.Context(), wrong, method.Answer{}, with(in)); err == nil {
			t.Fatalf("%q renews a session", wrong)
		}
	}
	raised, err := w.StepUp.StepUp(t.Context(), password, method.Answer{}, with(in))
	w.must(err)
	if raised.AAL != 1 || !raised.AuthenticatedAt.Equal(w.clock.Now()) ||
		!slices.Equal(raised.Methods, []string{"password"}) {
		t.Errorf("%+v", raised.Session)
	}
	_, err = w.Enrollment.Begin(t.Context(), &raised.Session, record.FactorTOTP)
	w.must(err)
}

// Of two sessions that set up an app at once, one does: the other's app is not that of the account.
func TestOfConcurrentEnrollmentsOneSucceeds(t *testing.T) {
	for range 5 {
		w := newFixture(t, limits(0, 100))
		w.register(ada, password)
		var issued []sessions.Issued
		var secrets []string
		for range 4 {
			in, err := w.Login.Login(t.Context(), credentials(ada, password), from)
			w.must(err)
			e, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
			w.must(err)
			issued, secrets = append(issued, in), append(secrets, e.Secret)
		}
		var succeeded atomic.Int32
		winner := atomic.Int32{}
		concurrently(w.twoServices(), 4, func(i int, s *account.Service) {
			// A code of the next step is accepted after one of this step: that a step is used once does not decide it.
			_, _, err := s.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(secrets[i], i%2),
				with(issued[i]))
			w.allowKinds(err, errs.Exists, errs.Denied, errs.Conflict)
			if err == nil {
				succeeded.Add(1)
				winner.Store(int32(i)) //nolint:gosec // below 4
			}
		})
		if succeeded.Load() != 1 {
			t.Fatalf("%d apps were set up", succeeded.Load())
		}
		w.clock.advance(time.Minute)
		_, err := w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret,
			totpFactor(w.totpCode(secrets[winner.Load()], 0)), from)
		w.must(err)
	}
}

// A request has read its user before another one adds an app, and confirms its own by a later code.
func TestASecondAppDoesNotReplaceTheFirst(t *testing.T) {
	w := newFixture(t)
	one := w.register(ada, password)
	other := w.mustLogin(ada, password, one.User.UUID)
	first, err := w.Enrollment.Begin(t.Context(), &one.Session, record.FactorTOTP)
	w.must(err)
	second, err := w.Enrollment.Begin(t.Context(), &other.Session, record.FactorTOTP)
	w.must(err)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(first.Secret, 0), with(one))
	w.must(err)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(second.Secret, 1), with(other))
	w.wantKind(err, errs.Exists)
	w.clock.advance(time.Minute)
	_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(first.Secret, 0)), from)
	w.must(err)
}

func TestAnAppIsConfirmedByTheSessionThatSetsItUp(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	other := w.mustLogin(ada, password, in.User.UUID)
	e, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
	w.must(err)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(e.Secret, 0), with(other))
	w.wantKind(err, errs.Conflict)
	again, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
	w.must(err)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(e.Secret, 0), with(in))
	w.wantKind(err, errs.Denied)
	w.clock.advance(10 * time.Minute)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(again.Secret, 0), with(in))
	w.wantKind(err, errs.Conflict)
	key, token, err := w.Keys.Create(t.Context(), keys.New{Name: "key"}, password, with(in))
	w.must(err)
	me, err := w.Sessions.Authenticate(t.Context(), token)
	w.must(err)
	_, err = w.Enrollment.Begin(t.Context(), me, record.FactorTOTP)
	w.wantKind(err, errs.Denied)
	if me.AAL != 1 || !me.AuthenticatedAt.IsZero() || key.ID != me.ID {
		t.Errorf("the session of an API key: %+v", me)
	}
}

func TestThePolicyOfSecondFactors(t *testing.T) {
	rule, problems := policy.CompileUserRule(`user.group == "staff"`)
	if problems != nil {
		t.Fatal(problems)
	}
	t.Run("off", func(t *testing.T) {
		w := newFixture(t, func(o *account.Options) { o.MFA.Policy = sessions.MFAOff })
		in := w.register(ada, password)
		_, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
		w.wantKind(err, errs.Conflict)
		on := w.opts
		on.MFA = sessions.MFA{}
		w.opts = on
		other, _ := w.newService()
		e, err := other.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
		w.must(err)
		_, _, err = other.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(e.Secret, 0), with(in))
		w.must(err)
		w.mustLogin(ada, password, in.User.UUID) // the operator has turned them off
	})
	t.Run("required", func(t *testing.T) {
		w := newFixture(t, func(o *account.Options) { o.MFA.Policy = sessions.MFARequired })
		in := w.register(ada, password)
		w.wantStep(sessions.RequireComplete(&in.Session), errs.StepEnroll)
		me, err := w.Sessions.Authenticate(t.Context(), in.Token)
		w.must(err)
		w.wantStep(sessions.RequireComplete(me), errs.StepEnroll)
		other := w.mustLogin(ada, password, in.User.UUID)
		e := w.enroll(in)
		w.must(sessions.RequireComplete(&e.Session))
		me, err = w.Sessions.Authenticate(t.Context(), other.Token)
		w.must(err)
		w.wantStep(sessions.RequireComplete(me), errs.StepSecondFactor)
		w.wantKind(w.Enrollment.Remove(t.Context(), &e.Session, record.FactorTOTP), errs.Conflict)
		_, token, err := w.Keys.Create(t.Context(), keys.New{Name: "key"}, password, with(e.Issued))
		w.must(err)
		me, err = w.Sessions.Authenticate(t.Context(), token)
		w.must(err)
		w.must(sessions.RequireComplete(me))
	})
	t.Run("by a rule", func(t *testing.T) {
		w := newFixture(t, func(o *account.Options) { o.MFA = sessions.MFA{Policy: sessions.MFAOff, Required: rule} })
		in := w.register(ada, password)
		w.must(sessions.RequireComplete(&in.Session)) // without the field
		c := credentials("bob@example.com", password)
		c.Fields = object.Object{"group": []byte(`"staff"`)}
		bob, _, err := w.Registration.Register(t.Context(), c, from)
		w.must(err)
		w.wantStep(sessions.RequireComplete(&bob.Session), errs.StepEnroll)
		w.enroll(bob)
		w.beginLogin("bob@example.com")
	})
}

func TestAnAdminResetsFactors(t *testing.T) {
	w := newFixture(t)
	e := w.enroll(w.register(ada, password))
	p := w.beginLogin(ada)
	_, err := w.Admin.ResetFactors(t.Context(), e.User.UUID)
	w.must(err)
	if w.valid(e.Token) {
		t.Error("a session outlives the reset")
	}
	_, err = w.Login.CompleteLogin(t.Context(), p.Secret, recoveryFactor(e.codes[0]), from)
	w.wantKind(err, errs.Unauthenticated)
	w.mustLogin(ada, password, e.User.UUID)
	all := w.recorder.of(event.AuthFactorRemoved, "Users")
	var details event.AuthDetails
	if len(all) != 1 || json.Unmarshal(all[0].Auth, &details) != nil || details.Factor != "all" ||
		details.Reason != "reset" {
		t.Errorf("events: %+v", details)
	}
	_, err = w.Admin.ResetFactors(t.Context(), "nobody")
	w.wantKind(err, errs.NotFound)
}

// Who registers the address of somebody else, and adds a second factor, does not keep its owner out, nor in company: a
// recovery removes the factor. That of the owner stays: a mailbox alone is one factor.
func TestARecoveryKeepsTheOwnersFactorsAlone(t *testing.T) {
	for _, owner := range []bool{false, true} {
		w := newFixture(t)
		in := w.register(ada, password)
		if owner {
			_, err := w.Registration.FollowLink(t.Context(), ada, w.lastMail(ada).token, with(in))
			w.must(err)
		}
		w.enroll(in)
		c := w.requestRecovery(ada, "the password of the owner")
		w.must(w.Recovery.Recover(t.Context(), c, from))
		_, err := w.Login.Login(t.Context(), credentials(ada, "the password of the owner"), from)
		if pending := logins.Pending(err) != nil; pending != owner || !owner && err != nil {
			t.Errorf("owner: %v; the second factor is asked for: %v (%v)", owner, pending, err)
		}
	}
}

func TestSecretsOfAppsAreEncryptedWithTheKeyOfTheConfiguration(t *testing.T) {
	sealer, err := seal.New(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := newFixture(t, func(o *account.Options) { o.Sealer = sealer })
	e := w.enroll(w.register(ada, password))
	if stored := string(w.record("Users", e.User.UUID)["_factors"]); strings.Contains(stored, e.secret) {
		t.Error("the secret is stored as it is")
	}
	_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(e.secret, 0)), from)
	w.must(err)
	w.opts.Sealer, err = seal.New(seal.NewKey())
	w.must(err)
	other, _ := w.newService()
	_, err = other.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(e.secret, 1)), from)
	w.wantKind(err, errs.Internal)
	if strings.Contains(err.Error(), e.secret) {
		t.Error("the error has the secret")
	}
	// A way in without the key.
	_, err = other.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, recoveryFactor(e.codes[0]), from)
	w.must(err)
}

// A login for an application is asked for the second factor too, and ends with a code whose session has both.
func TestAnApplicationGetsItsCodeAfterTheSecondFactor(t *testing.T) {
	w := newFixture(t, configuredApplications)
	e := w.enroll(w.register(ada, password))
	in, err := w.Login.Login(t.Context(), credentials(ada, password), w.forApplication(siteRedirect))
	p := logins.Pending(err)
	if p == nil || in.Code != "" {
		t.Fatalf("a code without the second factor: %+v, %v", in, err)
	}
	issued, err := w.Login.CompleteLogin(t.Context(), p.Secret, totpFactor(w.totpCode(e.secret, 0)), from)
	w.must(err)
	if issued.Code == "" || issued.Token != "" || issued.Application == nil ||
		issued.Application.Redirect != siteRedirect {
		t.Fatalf("%+v", issued)
	}
	session, err := w.Applications.Exchange(t.Context(), exchangeOf(issued.Code, siteRedirect), from)
	w.must(err)
	if session.AAL != 2 || !slices.Equal(session.Methods, []string{"password", "totp"}) {
		t.Errorf("%+v", session.Session)
	}
	w.clock.advance(time.Hour)
	raised, err := w.StepUp.StepUp(t.Context(), "", totpFactor(w.totpCode(e.secret, 0)), with(session))
	w.must(err)
	if raised.Application != nil || raised.Session.Application != siteRedirect {
		t.Errorf("the session that replaces that of an application: %+v", raised)
	}
}

func emailFactor(code string) method.Answer {
	return method.Answer{Type: record.FactorEmail, Code: code}
}

func TestCodesOfMailsAreASecondFactor(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	w.must(w.BeginMailFactor(t.Context(), &in.Session))
	code := w.lastMail(ada).secret()
	other := w.mustLogin(ada, password, in.User.UUID)
	_, _, err := w.Enrollment.Confirm(t.Context(), record.FactorEmail, code, with(other))
	w.wantKind(err, errs.Denied) // another session has asked for it
	raised, codes, err := w.Enrollment.Confirm(t.Context(), record.FactorEmail, code, with(in))
	w.must(err)
	if raised.AAL != 2 || len(codes) != 10 {
		t.Errorf("%+v, %d codes", raised.Session, len(codes))
	}
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorEmail, code, with(raised))
	w.wantKind(err, errs.Exists)

	w.clock.advance(2 * time.Minute)
	first, second := w.beginLogin(ada), w.beginLogin(ada)
	if !slices.Equal(first.Factors, []string{record.FactorEmail, record.FactorRecovery}) {
		t.Errorf("the login can be completed by %v", first.Factors)
	}
	w.must(w.MailSecondCode(t.Context(), first.Secret, from))
	code = w.lastMail(ada).secret()
	complete := func(secret, code string) error {
		_, err := w.Login.CompleteLogin(t.Context(), secret, emailFactor(code), from)
		return err
	}
	w.wantKind(complete(second.Secret, code), errs.Denied)
	w.must(complete(first.Secret, code))
	w.wantKind(complete(second.Secret, code), errs.Denied)
	w.wantKind(w.MailSecondCode(t.Context(), first.Secret, from), errs.Unauthenticated)
	w.wantKind(w.MailSecondCode(t.Context(), "wrong", from), errs.Unauthenticated)

	// Who logs in by a mail proves the mailbox: that is no second factor.
	w.clock.advance(2 * time.Minute)
	requested, err := w.Mails.RequestLogin(t.Context(), ada, record.MethodCode, from)
	w.must(err)
	_, err = w.Login.LoginByMail(t.Context(), ada, w.lastMail(ada).secret(), bound(from, requested))
	p := logins.Pending(err)
	if p == nil || slices.Contains(p.Factors, record.FactorEmail) {
		t.Fatalf("after a login by mail: %+v, %v", p, err)
	}
	w.wantKind(w.MailSecondCode(t.Context(), p.Secret, from), errs.Invalid)
	w.wantKind(complete(p.Secret, "123456"), errs.Invalid)
	_, err = w.Login.CompleteLogin(t.Context(), p.Secret, recoveryFactor(codes[0]), from)
	w.must(err)
}
