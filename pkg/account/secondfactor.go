package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// A login whose second factor is missing is an object in the store of tokens, found by the hash of a secret that the
// client has: a browser in a cookie. It holds what the first factor has proven. It is consumed before the session begins, so one login
// begins one session, and it ends with all sessions of its user.

// PendingTTL is how long somebody has for their second factor.
const PendingTTL = 10 * time.Minute

func pendingUUID(secret string) string { return "pending-" + hexDigest(secret) }

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

// completeLogin logs in a user who has proven who they are. Who has a second factor has to prove that as well, unless
// the proof is two factors: the error then has a PendingLogin. Every login ends here.
func (s *Service) completeLogin(ctx context.Context, user store.Stored, p proof, c Client) (IssuedSession, error) {
	if p.aal >= 2 || !factorsOf(user.Body).any() {
		return s.startSession(ctx, user, p, c)
	}
	o, err := user.Object()
	if err != nil {
		return IssuedSession{}, err
	}
	if isMarked(o, markDisabled) {
		return IssuedSession{Application: c.Application}, errDisabled()
	}
	visible, err := s.seenByRules(user, o)
	if err != nil {
		return IssuedSession{}, err
	}
	if s.mfa.of(ctx, visible) == MFAOff {
		return s.startSession(ctx, user, p, c)
	}
	usable := s.usable(user, p.methods)
	if len(usable) == 0 {
		p.limited = true
		return s.startSession(ctx, user, p, c)
	}
	pending := &PendingLogin{Secret: newSecret(), Factors: usable, Expires: s.now().Add(PendingTTL)}
	flow := object.Object{}
	flow.Set(fieldLinkUser, user.UUID)
	flow.Set(fieldEpoch, epoch(o))
	p.write(flow)
	if c.Application != nil {
		flow.Set(fieldApplication, c.Application)
	}
	flow.Set(fieldExpires, timestamp(pending.Expires))
	if _, err := s.tokens.Save(asService(ctx, user.UUID), flow, pendingUUID(pending.Secret)); err != nil {
		return IssuedSession{}, err
	}
	return IssuedSession{Application: c.Application}, errs.Wrap(pending, errs.Unauthenticated, "the second factor is missing")
}

// errPending is returned for a pending login that does not exist, or no more.
func errPending() error {
	return errs.New(errs.Unauthenticated, "this login was not begun here, is finished, or took too long or too many tries: log in again")
}

// SecondFactor is what proves a second factor.
type SecondFactor struct {
	Type    string // "": TOTP
	Code    string
	Passkey PasskeyAnswer
}

// CompleteLogin logs in somebody whose second factor was missing, by the secret of the pending login. For an application it
// returns a code, as the login would have.
//
// Errors: Denied for what does not prove the factor, or a user who is disabled; Unauthenticated when the login has to begin again, with a
// Repetition where it was completed by the same; Invalid; Limited.
func (s *Service) CompleteLogin(ctx context.Context, secret string, f SecondFactor, from Client) (IssuedSession, error) {
	if err := s.takeAttempt(from); err != nil {
		return IssuedSession{}, err
	}
	answer := f.digest(secret)
	flow, login, err := s.beginTry(asService(ctx, ""), secret, answer)
	if err != nil {
		if r := Repeated(err); r != nil {
			r.Known = from.Cookie
			s.returnAttempt(from)
		}
		return IssuedSession{}, recognize(err, from)
	}
	session, err := s.completePending(ctx, flow, login, answer, f, from) // settles what it uses up
	if err != nil {
		s.endTry(asService(ctx, ""), flow.UUID, answer)
	}
	return session, err
}

// digest identifies what proves a second factor of a pending login: it has a secret that nobody else knows.
func (f SecondFactor) digest(secret string) string {
	return digest(secret + "\n" + f.Type + "\n" + typedCode(f.Code) + "\n" + string(f.Passkey.Credential))
}

// forgetProof is for a proof of a second factor that has led to nothing: there is nothing to repeat.
func (s *Service) forgetProof(ctx context.Context, user string, f SecondFactor) {
	switch f.Type {
	case FactorPasskey:
		s.settle(ctx, passkeyUUID(f.Passkey.Secret), false)
	case FactorEmail:
		s.forgetUsed(ctx, secondMailbox(user), func(u usedSecret) bool { return secretMatches(u.Binding+":"+typedCode(f.Code), u.Hash) })
	}
}

// completePending completes a login whose try was counted.
func (s *Service) completePending(ctx context.Context, flow store.Stored, login object.Object, answer string, f SecondFactor, from Client) (_ IssuedSession, err error) {
	if from.Application, err = s.flowApplication(login); err != nil {
		return IssuedSession{}, errPending()
	}
	user, err := s.pendingUser(ctx, login)
	if err != nil {
		return IssuedSession{Application: from.Application}, err
	}
	p := proofOf(login)
	method, err := s.verifySecond(ctx, user, f, p.methods, flow.UUID, from)
	if err != nil {
		return IssuedSession{Application: from.Application}, err
	}
	used := use{Act: ActLoggedIn, Provider: p.provider, Browser: browserDigest(from), Answer: answer, Done: true}
	if err := s.consumePending(asService(ctx, ""), flow.UUID, used); err != nil {
		s.forgetProof(ctx, user.UUID, f)
		return IssuedSession{Application: from.Application}, err
	}
	s.returnAttempts(from, method)
	p.methods, p.aal, p.at = append(p.methods, method), 2, s.now()
	session := IssuedSession{Application: from.Application}
	if err = s.passwordKnown(ctx, user, p.methods); err == nil {
		session, err = s.startSession(ctx, user, p, from)
	}
	if err != nil {
		s.settle(ctx, flow.UUID, false)
	}
	return session, err
}

// pendingUser returns the user of a pending login, unless all their sessions were ended since it began.
func (s *Service) pendingUser(ctx context.Context, login object.Object) (store.Stored, error) {
	uuid, _ := login.Text(fieldLinkUser)
	user, err := s.users.Get(asService(ctx, ""), uuid)
	if errors.Is(err, errs.NotFound) {
		return user, errPending()
	}
	if err != nil {
		return user, err
	}
	o, err := user.Object()
	switch {
	case err != nil:
		return user, err
	case isMarked(o, markDisabled):
		return user, errDisabled()
	case epoch(o) != epoch(login):
		return user, errPending()
	}
	return user, nil
}

// consumePending ends a pending login. Of two that complete it at once, one does. Others count their tries in the same record: that
// they write it keeps nobody from completing, whose recovery code is used up by now.
func (s *Service) consumePending(ctx context.Context, uuid string, u use) error {
	_, err := s.tokens.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		if _, used := useOf(o); used {
			return store.Mutation{}, errPending()
		}
		return store.Mutation{Fields: s.usedFields(o, u)}, nil
	})
	if errors.Is(err, errs.NotFound) {
		err = errPending()
	}
	return err
}

// pendingLogin returns a pending login without counting a try.
func (s *Service) pendingLogin(ctx context.Context, secret string) (flow store.Stored, login object.Object, err error) {
	flow, err = s.tokens.Get(asService(ctx, ""), pendingUUID(secret))
	if errors.Is(err, errs.NotFound) || secret == "" {
		return flow, nil, errPending()
	}
	if err != nil {
		return flow, nil, err
	}
	login, err = flow.Object()
	if _, used := useOf(login); err == nil && (used || !s.now().Before(timeField(login, fieldExpires))) {
		err = errPending()
	}
	return flow, login, err
}

// usable returns the types of second factors with which a login of a user that began by some methods can be completed.
func (s *Service) usable(user store.Stored, methods []string) []string {
	return factorsOf(user.Body).usable(provesMailbox(methods, user), timestamp(s.now()))
}

// verifySecond proves a second factor of a user, after a login by some methods, and returns its method. flow identifies what
// it is proven for. Errors: Denied; Invalid; Limited.
func (s *Service) verifySecond(ctx context.Context, user store.Stored, f SecondFactor, methods []string, flow string, from Client) (method string, err error) {
	if f.Type == "" {
		f.Type = FactorTOTP
	}
	has := factorsOf(user.Body)
	if !slices.Contains(s.usable(user, methods), f.Type) {
		return "", errNoFactor()
	}
	return f.Type, s.tryCode(from, func() error {
		return s.attempt(ctx, user.UUID, f.Type, func(ctx context.Context) (step uint64, ok bool, err error) {
			switch f.Type {
			case FactorTOTP:
				return s.verifyTOTP(user.UUID, has.TOTP, f.Code)
			case FactorEmail:
				_, ok, err = s.checkSecondCode(ctx, user, flow, f.Code)
				return 0, ok, err
			case FactorPasskey:
				ok, err = s.provesPasskey(ctx, user, f.Passkey, flow)
				return 0, ok, err
			default:
				ok, err = s.useRecoveryCode(ctx, user, f.Code)
				return 0, ok, err
			}
		})
	})
}
