package account_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"belfry/internal/seal"
	"belfry/pkg/account"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/test"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// withWord adds a method, as a line of wiring does.
func withWord(o *account.Options) { o.Methods = append(o.Methods, test.New) }

func word(code string) method.Answer { return method.Answer{Type: test.Name, Code: code} }

// learn adds a word in a session, and returns it.
func (w *fixture) learn(in sessions.Issued) (said string, session sessions.Issued, codes []string) {
	w.Helper()
	made, err := w.Enrollment.Begin(w.Context(), &in.Session, test.Name)
	w.must(err)
	session, codes, err = w.Enrollment.Confirm(w.Context(), test.Name, made.Secret, with(in))
	w.must(err)
	return made.Secret, session, codes
}

// byWord logs in by a word.
func (w *fixture) byWord(said string) (sessions.Issued, error) {
	return w.Login.LoginBy(w.Context(), test.Name, ada, method.Answer{Code: said}, from)
}

func TestAnAddedMethodIsASecondFactor(t *testing.T) {
	w := newFixture(t, withWord, configuredNotices)
	in := w.register(ada, password)
	made, err := w.Enrollment.Begin(t.Context(), &in.Session, test.Name)
	w.must(err)
	_, _, err = w.Enrollment.Confirm(t.Context(), test.Name, "wrong", with(in))
	w.wantKind(err, errs.Denied)
	raised, codes, err := w.Enrollment.Confirm(t.Context(), test.Name, made.Secret, with(in))
	w.must(err)
	if raised.AAL != 2 || len(codes) != 10 || w.valid(in.Token) {
		t.Errorf("after the enrollment: AAL %d, %d recovery codes, the former session is valid: %v", raised.AAL,
			len(codes), w.valid(in.Token))
	}
	if _, err := w.Enrollment.Begin(t.Context(), &raised.Session, test.Name); errs.KindOf(err) != errs.Exists {
		t.Errorf("a second word: %v", err)
	}
	if added := w.authEvents(event.AuthFactorAdded); len(added) != 1 || added[0].Factor != test.Name {
		t.Errorf("events of the enrollment: %+v", added)
	}

	p := w.beginLogin(ada)
	if !slices.Equal(p.Factors, []string{test.Name, record.FactorRecovery}) {
		t.Errorf("the login asks for %q", p.Factors)
	}
	_, err = w.Login.CompleteLogin(t.Context(), p.Secret, word("wrong"), from)
	w.wantKind(err, errs.Denied)
	complete := must(w.Login.CompleteLogin(t.Context(), p.Secret, word(made.Secret), from))
	if complete.AAL != 2 || !slices.Equal(complete.Methods, []string{record.MethodPassword, test.Name}) {
		t.Errorf("the login has AAL %d, by %q", complete.AAL, complete.Methods)
	}

	factors, byPassword, err := w.StepUp.StepUpBy(t.Context(), &complete.Session)
	w.must(err)
	if byPassword || !slices.Contains(factors, test.Name) {
		t.Errorf("a step-up is by %q, by the password: %v", factors, byPassword)
	}
	_, err = w.StepUp.StepUp(t.Context(), password, method.Answer{}, with(complete))
	w.wantKind(err, errs.Invalid)
	again := must(w.StepUp.StepUp(t.Context(), "", word(made.Secret), with(complete)))
	if w.valid(complete.Token) || !w.valid(again.Token) {
		t.Error("the step-up has not replaced the session")
	}

	w.must(w.Enrollment.Remove(t.Context(), &again.Session, test.Name))
	if removed := w.authEvents(event.AuthFactorRemoved); len(removed) != 1 || removed[0].Factor != test.Name {
		t.Errorf("events of the removal: %+v", removed)
	}
	w.mustLogin(ada, password, in.User.UUID) // by the password alone
	w.wantKinds(ada, "factorAdded", "factorRemoved")
}

func TestAnAddedMethodBeginsALogin(t *testing.T) {
	w := newFixture(t, withWord, limits(0, 2), func(o *account.Options) { o.Email.UniformErrors = true })
	said, in, codes := w.learn(w.register(ada, password))

	// It is one factor, and not another one besides.
	_, err := w.byWord(said)
	p := logins.Pending(err)
	if p == nil || !slices.Equal(p.Factors, []string{record.FactorRecovery}) {
		t.Fatalf("a login by a word: %v, %+v", err, p)
	}
	_, err = w.Login.CompleteLogin(t.Context(), p.Secret, word(said), from)
	w.wantKind(err, errs.Invalid)
	byCode := must(w.Login.CompleteLogin(t.Context(), p.Secret, recoveryFactor(codes[0]), from))
	if byCode.AAL != 2 || !slices.Equal(byCode.Methods, []string{test.Name, record.MethodRecovery}) {
		t.Errorf("AAL %d, by %q", byCode.AAL, byCode.Methods)
	}
	app := w.enroll(in)
	_, err = w.byWord(said)
	session := must(w.Login.CompleteLogin(t.Context(), logins.Pending(err).Secret,
		totpFactor(w.totpCode(app.secret, 0)), from))
	if session.AAL != 2 || !slices.Equal(session.Methods, []string{test.Name, record.MethodTOTP}) {
		t.Errorf("AAL %d, by %q", session.AAL, session.Methods)
	}

	// Wrong words delay the account, and are events. Who has none is nobody.
	for range 2 {
		_, err = w.byWord("wrong")
		w.wantKind(err, errs.Denied)
	}
	_, err = w.byWord(said)
	w.wantKind(err, errs.Limited)
	w.Close() // the failures are recorded in the background
	failed := w.authEvents(event.AuthLoginFailed)
	if len(failed) != 2 || failed[0].Method != test.Name || failed[0].Reason != test.Name ||
		failed[0].Factor != ada+"_email" {
		t.Errorf("events of wrong words: %+v", failed)
	}
	w.register("bob@example.com", password)
	for _, login := range []string{"bob@example.com", "nobody@example.com"} {
		_, err = w.Login.LoginBy(t.Context(), test.Name, login, method.Answer{Code: said}, from)
		w.wantKind(err, errs.Denied)
	}
	_, err = w.Login.LoginBy(t.Context(), test.Name, ada, method.Answer{}, from)
	w.wantKind(err, errs.Invalid)
}

func TestASecondFactorAloneBeginsNoLogin(t *testing.T) {
	w := newFixture(t, withWord)
	e := w.enroll(w.register(ada, password))
	for _, c := range []struct{ name, code string }{
		{record.FactorTOTP, w.totpCode(e.secret, 1)}, {record.FactorRecovery, e.codes[0]},
		{record.FactorEmail, "123456"}, {record.MethodPassword, password},
		{record.MethodPasskey, ""}, {"nothing", "x"}, {"", "x"},
	} {
		if in, err := w.Login.LoginBy(t.Context(), c.name, ada, method.Answer{Code: c.code}, from); errs.KindOf(
			err) != errs.NotFound || in.Token != "" {
			t.Errorf("a login by %q alone: %v", c.name, err)
		}
	}
	for _, name := range []string{record.FactorRecovery, record.MethodPassword, "nothing", ""} {
		if _, _, err := w.Enrollment.Confirm(t.Context(), name, password, with(e.Issued)); errs.KindOf(
			err) != errs.NotFound {
			t.Errorf("%q as a second factor: %v", name, err)
		}
	}
}

func TestTheSecretOfOneMethodIsNotConfirmedAsThatOfAnother(t *testing.T) {
	w := newFixture(t, withWord)
	in := w.register(ada, password)
	app, err := w.Enrollment.Begin(t.Context(), &in.Session, record.FactorTOTP)
	w.must(err)
	_, _, err = w.Enrollment.Confirm(t.Context(), test.Name, app.Secret, with(in))
	w.wantKind(err, errs.Conflict)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(app.Secret, 0), with(in))
	w.must(err)
	if factors := string(w.record("Users", in.User.UUID)["_factors"]); object.Field([]byte(factors), test.Name) != nil {
		t.Errorf("the factors are %s", factors)
	}
}

// A session is limited whatever is added in it: also codes of mails, by a user whose only other factor does not count
// yet.
func TestALimitedSessionStaysOneWhateverIsAdded(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.enrollEmail(w.register(ada, password), ada)
	codes, err := w.Enrollment.RenewRecoveryCodes(t.Context(), w.now(in).Session)
	w.must(err)
	for _, code := range codes { // all are used up
		_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
		must(w.Login.CompleteLogin(t.Context(), logins.Pending(err).Secret, recoveryFactor(code), from))
	}
	code, client := w.mailedCode(ada)
	limited := must(w.Login.LoginByMail(t.Context(), ada, code, client))
	app, err := w.Enrollment.Begin(t.Context(), w.now(limited).Session, record.FactorTOTP)
	w.must(err)
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(app.Secret, 0), w.now(limited))
	w.must(err)
	w.must(w.Enrollment.Remove(t.Context(), w.now(in).Session, record.FactorEmail))

	in = must(w.Login.Login(t.Context(), credentials(ada, password), from)) // the app does not count yet
	if me := w.now(in).Session; me.AAL != 1 || me.Missing != errs.StepEnroll {
		t.Fatalf("the session is not limited: %+v", me)
	}
	w.clock.advance(time.Minute)
	w.must(w.BeginMailFactor(t.Context(), w.now(in).Session))
	next, codes, err := w.Enrollment.Confirm(t.Context(), record.FactorEmail, w.lastMail(ada).secret(), w.now(in))
	w.must(err)
	if me := w.now(in).Session; next.Token != "" || len(codes) != 0 || me.AAL != 1 || me.Missing != errs.StepEnroll {
		t.Errorf("the session is raised: %+v, %d recovery codes", me, len(codes))
	}
}

// Whoever reads a mailbox, and nothing else, waits for what they have added as everybody does: it begins no login
// before.
func TestAMethodOfALimitedSessionBeginsALoginLater(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices, withWord)
	in := w.register(ada, password)
	w.must(w.BeginMailFactor(t.Context(), &in.Session))
	_, codes, err := w.Enrollment.Confirm(t.Context(), record.FactorEmail, w.lastMail(ada).secret(), with(in))
	w.must(err)
	for _, code := range codes { // all are used up
		must(w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, recoveryFactor(code), from))
	}
	code, client := w.mailedCode(ada)
	said, _, _ := w.learn(
		sessions.Issued{Session: *w.now(must(w.Login.LoginByMail(t.Context(), ada, code, client))).Session})
	_, err = w.byWord(said)
	w.wantKind(err, errs.Denied)
	w.clock.advance(sessions.EnrollDelay + time.Minute)
	_, err = w.byWord(said)
	if p := logins.Pending(err); p == nil || !slices.Equal(p.Factors, []string{record.FactorEmail}) {
		t.Errorf("a login by a word that counts: %v", err)
	}
}

// odd is a method that proves a session again, and says in either way that an answer is wrong.
type odd struct {
	*test.Method
	denied error
}

func (o odd) Has(context.Context, record.User) (bool, error) { return true, nil }

func (o odd) Prove(context.Context, record.User, method.Answer, string) (uint64, bool, error) {
	return 0, false, o.denied
}

func TestAWrongAnswerOfAnyMethodIsWrong(t *testing.T) {
	for name, denied := range map[string]error{"wrong": nil, "denied": errs.New(errs.Denied, "it is too old")} {
		w := newFixture(t, limits(0, 2), func(o *account.Options) {
			o.Email.UniformErrors = true
			o.Methods = append(o.Methods, func(*record.Stores, *seal.Sealer) method.Method {
				return odd{&test.Method{},
					denied}
			})
		})
		in := w.register(ada, password)
		if again, err := w.StepUp.StepUp(t.Context(), "", word("x"), with(in)); errs.KindOf(err) != errs.Denied ||
			again.Token != "" {
			t.Errorf("%s: a step-up: %v", name, err)
		}
		for _, kind := range []errs.Kind{errs.Denied, errs.Denied, errs.Limited} {
			if _, err := w.byWord("x"); errs.KindOf(err) != kind {
				t.Errorf("%s: a login: %v, want %v", name, err, kind)
			}
		}
	}
}

// A provider can have the name of a method that begins no login.
func TestAProviderOfTheNameOfASecondFactor(t *testing.T) {
	w := newFixture(t,
		func(o *account.Options) { o.Providers = map[string]oauth.Provider{record.FactorTOTP: provider{}} })
	login := func() (sessions.Issued, error) {
		flow, err := w.Providers.Begin(t.Context(), record.FactorTOTP, true, from)
		w.must(err)
		u, err := url.Parse(flow.URL)
		w.must(err)
		in, _, err := w.Login.FinishProvider(t.Context(),
			url.Values{"state": {u.Query().Get("state")}, "code": {"ada"}}, flow.Secret, from)
		return in, err
	}
	w.enroll(must(login()))
	_, err := login()
	if p := logins.Pending(err); p == nil ||
		!slices.Equal(p.Factors, []string{record.FactorTOTP, record.FactorRecovery}) {
		t.Errorf("%v, %+v", err, p)
	}
}
