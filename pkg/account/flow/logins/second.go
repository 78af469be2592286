package logins

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/account/method"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// A login whose second factor is missing is an object in the store of tokens, found by the hash of a secret that the
// client has, in a browser as a cookie. It holds the proof of the first factor. It is consumed before the session
// begins, so one login begins one session, and it ends with all sessions of its user.

// PendingTTL is the time limit for the second factor.
const PendingTTL = 10 * time.Minute

func pendingUUID(pending string) string { return record.KindPending + secret.Hex(pending) }

// PendingLogin is the cause of an Unauthenticated error: a login whose second factor is missing.
type PendingLogin struct {
	Secret  string   // for CompleteLogin
	Factors []string // types of second factors that the user can use
	Expires time.Time
}

func (*PendingLogin) Error() string { return "the second factor is missing" }

// Pending returns the pending login that an error is about; nil for another error.
func Pending(err error) *PendingLogin {
	var p *PendingLogin
	errors.As(err, &p)
	return p
}

// LogIn logs in an identified user. A user with a second factor must also prove it, unless the proof is two factors:
// the error then has a PendingLogin. Every login calls it.
func (s *Flow) LogIn(ctx context.Context, user record.User, p record.Proof,
	c sessions.Client) (sessions.Issued, error) {
	return s.logIn(ctx, user, "", p, c)
}

// logIn is LogIn with an ident whose use is recorded once the second factor is proven; "" for none.
func (s *Flow) logIn(ctx context.Context, user record.User, ident string, p record.Proof,
	c sessions.Client) (sessions.Issued, error) {
	if p.AAL >= 2 || !user.Factors.Any() {
		return s.enter(ctx, user, p, c)
	}
	if user.MarkedDisabled {
		return sessions.Issued{Application: c.Application}, sessions.DisabledError()
	}
	visible, err := s.Sessions.SeenByRules(user)
	if err != nil {
		return sessions.Issued{}, err
	}
	if s.Sessions.PolicyOf(ctx, visible) == sessions.MFAOff {
		return s.enter(ctx, user, p, c)
	}
	usable := s.Usable(user, p.Methods)
	if len(usable) == 0 {
		p.Limited = true
		return s.enter(ctx, user, p, c)
	}
	pending := &PendingLogin{Secret: secret.New(), Factors: usable, Expires: s.DB.Now().Add(PendingTTL)}
	if _, err := s.DB.Tokens.Create(record.AsService(ctx, user.UUID), pendingUUID(pending.Secret), record.Token{
		User: user.UUID, Epoch: &user.Epoch, Proof: p, Application: c.Application, Expires: pending.Expires,
		Ident: ident,
	}); err != nil {
		return sessions.Issued{}, err
	}
	return sessions.Issued{Application: c.Application}, errs.Wrap(pending, errs.Unauthenticated,
		"the second factor is missing")
}

// enter starts the session of a user who has proven all required factors, or issues a code if the login is for an
// application, and records the device.
func (s *Flow) enter(ctx context.Context, user record.User, p record.Proof,
	c sessions.Client) (issued sessions.Issued, err error) {
	if c.Application != nil {
		issued, err = s.Applications.Issue(ctx, user, p, c.Application)
	} else {
		issued, err = s.Sessions.Start(ctx, user, p, c)
	}
	if err == nil {
		issued.Device = s.Notices.RecordDevice(record.AsService(ctx, user.UUID), user, c)
	}
	return issued, err
}

// errPending is returned for a pending login that does not, or no longer, exist.
func errPending() error {
	return errs.New(errs.Unauthenticated,
		"this login was started elsewhere, is finished, or took too long or too many tries: log in again")
}

// CompleteLogin completes a login whose second factor was missing, by the secret of the pending login. For an
// application it returns a code, as the login would have.
//
// Errors: Denied for an answer that does not prove the factor, or a disabled user; Unauthenticated if the login has to
// start again, with a Repetition if the same answer has completed it; Invalid; Limited.
func (s *Flow) CompleteLogin(ctx context.Context, pending string, a method.Answer,
	from sessions.Client) (sessions.Issued, error) {
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	answer := digest(a, pending)
	login, err := s.beginTry(record.AsService(ctx, ""), pending, answer)
	if err != nil {
		if r := once.Repeated(err); r != nil {
			r.Known = from.Cookie
			s.Guesses.Return(from.Address)
		}
		return sessions.Issued{}, once.Recognize(err, from)
	}
	session, err := s.completePending(ctx, login, answer, a, from) // settles the attempts that it takes
	if err != nil {
		s.endTry(record.AsService(ctx, ""), login.UUID, answer)
	}
	return session, err
}

// digest identifies an answer for a pending login. It contains the secret of the login.
func digest(a method.Answer, pending string) string {
	return secret.Digest(pending + "\n" + a.Type + "\n" + secret.TypedCode(a.Code) + "\n" + string(a.Signed.Credential))
}

// ForgetProof forgets a proof whose login failed: it must not count as a repetition.
func (s *Flow) ForgetProof(ctx context.Context, user string, a method.Answer) {
	if m := s.Methods.Get(a.Type); m != nil {
		m.Forget(ctx, user, a)
	}
}

// completePending completes a login whose try was counted.
func (s *Flow) completePending(ctx context.Context, login record.Token, answer string, a method.Answer,
	from sessions.Client) (_ sessions.Issued, err error) {
	if from.Application, err = s.Applications.For(login); err != nil {
		return sessions.Issued{}, errPending()
	}
	user, err := s.pendingUser(ctx, login)
	if err != nil {
		return sessions.Issued{Application: from.Application}, err
	}
	p := login.Proven()
	by, err := s.VerifySecond(ctx, user, a, p.Methods, login.UUID, from)
	if err != nil {
		return sessions.Issued{Application: from.Application}, err
	}
	used := record.Use{Act: record.ActLoggedIn, Provider: p.Provider, Browser: once.BrowserDigest(from), Answer: answer,
		Done: true}
	if err := s.consumePending(record.AsService(ctx, ""), login.UUID, used); err != nil {
		s.ForgetProof(ctx, user.UUID, a)
		return sessions.Issued{Application: from.Application}, err
	}
	s.ReturnAttempts(from, by)
	p.Methods, p.AAL, p.At = append(p.Methods, by), 2, s.DB.Now()
	session := sessions.Issued{Application: from.Application}
	if err = s.Sessions.PasswordKnown(ctx, user, p.Methods); err == nil {
		session, err = s.enter(ctx, user, p, from)
	}
	if err != nil {
		s.Uses.Settle(ctx, login.UUID, false)
		return session, err
	}
	s.recordUse(ctx, login.Ident)
	return session, nil
}

// ReturnAttempts gives back the attempts that a proof by a method has taken, including the attempt of its challenge, if
// any.
func (s *Flow) ReturnAttempts(from sessions.Client, name string) {
	s.Guesses.Return(from.Address)
	if s.Methods.About(name).Script {
		s.Guesses.Return(from.Address)
	}
}

// pendingUser returns the user of a pending login, unless all their sessions were ended since it began.
func (s *Flow) pendingUser(ctx context.Context, login record.Token) (record.User, error) {
	return sessions.UserOf(record.AsService(ctx, ""), s.DB, login, errPending())
}

// consumePending ends a pending login. Of two concurrent completions one succeeds. Concurrent tries are counted in the
// same record. Their writes must not fail a completion, because its recovery code is already used up.
func (s *Flow) consumePending(ctx context.Context, uuid string, u record.Use) error {
	_, err := s.DB.Tokens.Change(ctx, uuid, func(t *record.Token) error {
		if t.Use != nil {
			return errPending()
		}
		s.Uses.UseUp(t, u)
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		err = errPending()
	}
	return err
}

// pendingLogin returns a pending login without counting a try.
func (s *Flow) pendingLogin(ctx context.Context, pending string) (login record.Token, err error) {
	login, err = s.DB.Tokens.Read(record.AsService(ctx, ""), pendingUUID(pending))
	if errors.Is(err, errs.NotFound) || pending == "" {
		return login, errPending()
	}
	if err == nil && (login.Use != nil || !s.DB.Now().Before(login.Expires)) {
		err = errPending()
	}
	return login, err
}

// Usable returns the types of second factors with which a login of a user that began by some methods can be completed.
func (s *Flow) Usable(user record.User, methods []string) []string {
	return s.Methods.Usable(user.Factors, methods, sessions.ProvesMailbox(methods, user), record.Timestamp(s.DB.Now()))
}

// VerifySecond proves a second factor of a user, after a login by some methods, and returns its method. flow identifies
// the login or the session of the proof. Errors: Denied; Invalid; Limited.
func (s *Flow) VerifySecond(ctx context.Context, user record.User, a method.Answer, methods []string, flow string,
	from sessions.Client) (by string, err error) {
	by = cmp.Or(a.Type, record.FactorTOTP)
	m := s.Methods.Get(by)
	if m == nil || !slices.Contains(s.Usable(user, methods), by) {
		return "", errNoFactor()
	}
	return by, s.Guesses.TryCode(from.Address, func() error {
		return s.Guesses.Code(ctx, user.UUID, by, func(ctx context.Context) (step uint64, ok bool, err error) {
			step, ok, err = m.Prove(ctx, user, a, flow)
			if errors.Is(err, errs.Denied) && once.Repeated(err) == nil {
				err = nil // it counts as wrong, and the reply does not have the reason
			}
			return step, ok, err
		})
	})
}

// Ask sends a code, or makes a challenge, of a method for the user of a pending login, or of the client's session if
// secret is "". Errors: Unauthenticated if the login has to start again; Invalid if the method is neither a second
// factor of the account, nor can authenticate its session again; Conflict; NotFound for an account without a passkey;
// Limited.
func (s *Flow) Ask(ctx context.Context, name, secret string, from sessions.Client) (c method.Challenge, err error) {
	if err := s.Guesses.Take(from.Address); err != nil {
		return c, err
	}
	user, methods, flow, err := s.whoProves(ctx, secret, from)
	if err != nil {
		return c, err
	}
	m := s.Methods.Get(name)
	_, again := m.(method.Again)
	if m == nil || (secret != "" || !again) && !slices.Contains(s.Usable(user, methods), name) {
		return c, errNoFactor()
	}
	return m.Begin(ctx, user, flow) // an answer to the challenge returns the attempt
}

// whoProves returns the user of a pending login, or of the session of the client, the methods of their login, and the
// flow that needs the second factor.
func (s *Flow) whoProves(ctx context.Context, secret string,
	from sessions.Client) (user record.User, methods []string, flow string, err error) {
	if secret == "" && from.Session != nil {
		return from.Session.User, from.Session.Methods, sessions.SessionFlow(from.Session),
			sessions.RequireLogin(from.Session)
	}
	pending, err := s.pendingLogin(ctx, secret)
	if err != nil {
		return user, nil, "", err
	}
	user, err = s.pendingUser(ctx, pending)
	return user, pending.Methods, pending.UUID, err
}

// errNoFactor is returned for a factor that an account lacks.
func errNoFactor() error {
	return &errs.Error{Kind: errs.Invalid, Message: "the account has no such second factor",
		Fields: []errs.Field{{Pointer: "/type", Message: "must be one of the second factors that the login has named"}}}
}

// The data of a page that asks for a second factor.

// PendingFactors returns the types of second factors with which a pending login can be completed. Errors:
// Unauthenticated when the login has to begin again; Denied for a disabled user.
func (s *Flow) PendingFactors(ctx context.Context, secret string) ([]string, error) {
	login, err := s.pendingLogin(ctx, secret)
	if err != nil {
		return nil, err
	}
	user, err := s.pendingUser(ctx, login)
	if err != nil {
		return nil, err
	}
	return s.Usable(user, login.Methods), nil
}

// PendingSecret returns the secret of a login that waits for its second factor, or is completed.
func (s *Flow) PendingSecret(ctx context.Context, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool {
			_, err := s.DB.Tokens.Store.Get(record.AsService(ctx, ""), pendingUUID(secret))
			return err == nil
		}
	})
}
