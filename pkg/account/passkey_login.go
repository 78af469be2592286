package account

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// errPasskey does not say what is wrong with a passkey.
func errPasskey(cause error) error {
	const message = "the passkey is not known here, or its answer is wrong"
	if cause == nil {
		return errs.New(errs.Denied, message)
	}
	return errs.Wrap(cause, errs.Denied, message)
}

// errClone is for a passkey of which there may be a copy.
func errClone() error {
	return errs.New(errs.Denied, "the signature counter of this passkey went back: somebody may have a copy of it. Log in in another way, remove the passkey, and end sessions that you do not know")
}

// LoginByPasskey logs in by the answer to BeginPasskeyLogin. A passkey is two factors: the authenticator, and what it
// verifies its user by.
//
// Errors: Invalid for an answer that can't be read; Denied for one that is wrong, and for a disabled user; Limited; Unavailable.
func (s *Service) LoginByPasskey(ctx context.Context, a PasskeyAnswer, from Client) (IssuedSession, error) {
	if err := s.takeAttempt(from); err != nil {
		return IssuedSession{}, err
	}
	user, _, err := s.verifyPasskey(ctx, a, nil, passkeyLogin, ActLoggedIn)
	if r := Repeated(err); r != nil {
		r.nowhere = from.Application != nil
		err = recognize(err, from)
		s.returnAttempt(from)
	}
	if err != nil {
		return IssuedSession{}, err
	}
	session, err := s.completeLogin(asService(ctx, ""), user, s.proofBy(PasskeyType, MethodPasskey, 2), from)
	s.settle(ctx, passkeyUUID(a.Secret), err == nil)
	if err == nil {
		s.returnAttempts(from, MethodPasskey)
	}
	return session, err
}

// verifyPasskey verifies the answer to a challenge that passkeyOptions made for a purpose, and returns the user and
// the ident of the passkey. expected is the user who has to answer; nil: any. The answer is valid once: the challenge
// is consumed before it counts, and its signature counter is recorded before the user has proven anything. The caller settles what
// the challenge was used for, unless there is an error.
//
// Errors: Invalid for an answer that can't be read; Denied, with a Repetition for an answer that was sent before.
func (s *Service) verifyPasskey(ctx context.Context, a PasskeyAnswer, expected *store.Stored, why passkeyPurpose, act Act) (user, ident store.Stored, err error) {
	if err := s.requirePasskeys(); err != nil {
		return user, ident, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(a.Credential)
	if err != nil {
		return user, ident, errCredential(err)
	}
	if err := s.consumeChallenge(ctx, a, why, act); err != nil {
		return user, ident, err
	}
	if user, ident, err = s.verifyAnswer(ctx, a, expected, parsed); err != nil {
		s.settle(ctx, passkeyUUID(a.Secret), false)
	}
	return user, ident, err
}

// verifyAnswer verifies an answer whose challenge was used up for it.
func (s *Service) verifyAnswer(ctx context.Context, a PasskeyAnswer, expected *store.Stored, parsed *protocol.ParsedCredentialAssertionData) (user, ident store.Stored, err error) {
	ctx = asService(ctx, "")
	user, ident, err = s.findOwner(ctx, passkeyIdentity(parsed.RawID))
	if err != nil {
		return user, ident, err
	}
	if user.UUID == "" || expected != nil && user.UUID != expected.UUID {
		return store.Stored{}, store.Stored{}, errPasskey(nil)
	}
	o, err := ident.Object()
	if err != nil {
		return user, ident, err
	}
	p, ok := passkeyOf(o)
	if !ok {
		return user, ident, errPasskey(nil)
	}
	if err := s.verifyAssertion(parsed, p, user.UUID, passkeyChallenge(a.Secret), expected != nil); err != nil {
		owner, used := user.UUID, ident.UUID
		s.runInBackground(asService(ctx, owner), "recording a failed login", func(ctx context.Context) error {
			return s.recordPasskeyFailure(ctx, owner, used)
		})
		return store.Stored{}, store.Stored{}, errPasskey(err)
	}
	ident, err = s.recordAssertion(ctx, user.UUID, ident.UUID, p, parsed.Response.AuthenticatorData)
	return user, ident, err
}

// verifyAssertion reports an error for an answer that is not the credential's to the challenge. An authenticator that
// was not asked for certain credentials has to say whose credential it is.
func (s *Service) verifyAssertion(parsed *protocol.ParsedCredentialAssertionData, p passkey, user, challenge string, asked bool) error {
	handle := b64.EncodeToString(parsed.Response.UserHandle)
	if handle != userHandle(user) && (handle != "" || !asked) {
		return errors.New("the user handle is not that of the user")
	}
	err := parsed.Verify(challenge, s.passkeys.RPID, "", s.passkeys.Origins, nil, nil, protocol.TopOriginExplicitVerificationMode,
		false, true, true, p.PublicKey, protocol.SignaturePolicy{})
	if err != nil {
		return err
	}
	flags := parsed.Response.AuthenticatorData.Flags
	if flags.HasBackupEligible() != p.BackupEligible {
		return errors.New("the authenticator has changed whether the passkey can be backed up")
	}
	return checkBackup(flags)
}

// recordAssertion records the use of a passkey: its signature counter, atomically with the check that it grew. One that
// did not, although the authenticator counts, was signed by a copy, or before a use that is recorded: it is refused, and the passkey is marked.
func (s *Service) recordAssertion(ctx context.Context, user, ident string, verified passkey, data protocol.AuthenticatorData) (store.Stored, error) {
	suspected := false
	stored, err := s.idents.Mutate(asService(ctx, user), ident, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		p, ok := passkeyOf(o)
		if owner, _ := o.Text(fieldUser); !ok || owner != user || !bytes.Equal(p.PublicKey, verified.PublicKey) {
			return store.Mutation{}, errPasskey(nil) // removed, and registered again, meanwhile
		}
		at, fields := s.now(), object.Object{}
		if suspected = data.Counter <= p.SignCount && (data.Counter != 0 || p.SignCount != 0); suspected {
			fields.Set(fieldCloneSuspected, timestamp(at))
			return store.Mutation{Fields: fields, ExtraEvents: []store.ExtraEvent{
				s.audit(event.AuthCloneSuspected, user, event.AuthDetails{Method: MethodPasskey, Factor: ident}),
			}}, nil
		}
		p.SignCount, p.BackedUp = data.Counter, data.Flags.HasBackupState()
		fields.Set(fieldCredential, p)
		fields.Set("lastUsed", timestamp(at))
		fields[fieldFailures] = failures{At: at}.encode()
		return store.Mutation{Fields: fields}, nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return stored, errPasskey(nil)
	case err == nil && suspected:
		return stored, errClone()
	}
	return stored, err
}

// recordPasskeyFailure records in a passkey that its answer was wrong. It delays nobody: nobody guesses a signature.
func (s *Service) recordPasskeyFailure(ctx context.Context, user, ident string) error {
	_, err := s.idents.Mutate(ctx, ident, func(now store.Stored) (store.Mutation, error) {
		at := s.now()
		f := failures{Count: failuresOf(now).unexpired(at).Count + 1, At: at}
		return store.Mutation{Fields: object.Object{fieldFailures: f.encode()}, ExtraEvents: []store.ExtraEvent{
			s.audit(event.AuthLoginFailed, user, event.AuthDetails{Method: MethodPasskey, Factor: ident, Reason: "signature"}),
		}}, nil
	})
	return ignoreNotFound(err)
}
