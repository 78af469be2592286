package account

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/event"
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
	if err := s.guesses.Take(from.Address); err != nil {
		return IssuedSession{}, err
	}
	user, _, err := s.verifyPasskey(ctx, a, nil, passkeyLogin, ActLoggedIn)
	if r := Repeated(err); r != nil {
		r.nowhere = from.Application != nil
		err = recognize(err, from)
		s.guesses.Return(from.Address)
	}
	if err != nil {
		return IssuedSession{}, err
	}
	session, err := s.completeLogin(record.AsService(ctx, ""), user, s.proofBy(record.PasskeyType, record.MethodPasskey, 2), from)
	s.settle(ctx, passkeyUUID(a.Secret), err == nil)
	if err == nil {
		s.returnAttempts(from, record.MethodPasskey)
	}
	return session, err
}

// verifyPasskey verifies the answer to a challenge that passkeyOptions made for a purpose, and returns the user and
// the ident of the passkey. expected is the user who has to answer; nil: any. The answer is valid once: the challenge
// is consumed before it counts, and its signature counter is recorded before the user has proven anything. The caller settles what
// the challenge was used for, unless there is an error.
//
// Errors: Invalid for an answer that can't be read; Denied, with a Repetition for an answer that was sent before.
func (s *Service) verifyPasskey(ctx context.Context, a PasskeyAnswer, expected *record.User, why passkeyPurpose, act Act) (user record.User, ident record.Ident, err error) {
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
func (s *Service) verifyAnswer(ctx context.Context, a PasskeyAnswer, expected *record.User, parsed *protocol.ParsedCredentialAssertionData) (user record.User, ident record.Ident, err error) {
	ctx = record.AsService(ctx, "")
	user, ident, err = s.db.FindOwner(ctx, passkeyIdentity(parsed.RawID).Identity)
	if err != nil {
		return user, ident, err
	}
	if user.UUID == "" || expected != nil && user.UUID != expected.UUID {
		return record.User{}, record.Ident{}, errPasskey(nil)
	}
	if !isPasskey(ident) {
		return user, ident, errPasskey(nil)
	}
	if err := s.verifyAssertion(parsed, *ident.Credential, user.UUID, passkeyChallenge(a.Secret), expected != nil); err != nil {
		owner, used := user.UUID, ident.UUID
		s.runInBackground(record.AsService(ctx, owner), "recording a failed login", func(ctx context.Context) error {
			return s.recordPasskeyFailure(ctx, owner, used)
		})
		return record.User{}, record.Ident{}, errPasskey(err)
	}
	ident, err = s.recordAssertion(ctx, user.UUID, ident.UUID, *ident.Credential, parsed.Response.AuthenticatorData)
	return user, ident, err
}

// verifyAssertion reports an error for an answer that is not the credential's to the challenge. An authenticator that
// was not asked for certain credentials has to say whose credential it is.
func (s *Service) verifyAssertion(parsed *protocol.ParsedCredentialAssertionData, p record.Credential, user, challenge string, asked bool) error {
	handle := secret.B64.EncodeToString(parsed.Response.UserHandle)
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
func (s *Service) recordAssertion(ctx context.Context, user, ident string, verified record.Credential, data protocol.AuthenticatorData) (record.Ident, error) {
	suspected := false
	changed, err := s.db.Idents.Change(record.AsService(ctx, user), ident, func(i *record.Ident) error {
		if !isPasskey(*i) || i.User != user || !bytes.Equal(i.Credential.PublicKey, verified.PublicKey) {
			return errPasskey(nil) // removed, and registered again, meanwhile
		}
		at, p := s.now(), i.Credential
		if suspected = data.Counter <= p.SignCount && (data.Counter != 0 || p.SignCount != 0); suspected {
			i.CloneSuspected = record.Timestamp(at)
			i.Publish(s.db.Audit(event.AuthCloneSuspected, user, event.AuthDetails{Method: record.MethodPasskey, Factor: ident}))
			return nil
		}
		p.SignCount, p.BackedUp = data.Counter, data.Flags.HasBackupState()
		s.setUsed(i)
		return nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return changed, errPasskey(nil)
	case err == nil && suspected:
		return changed, errClone()
	}
	return changed, err
}

// recordPasskeyFailure records in a passkey that its answer was wrong. It delays nobody: nobody guesses a signature.
func (s *Service) recordPasskeyFailure(ctx context.Context, user, ident string) error {
	_, err := s.db.Idents.Change(ctx, ident, func(i *record.Ident) error {
		at := s.now()
		i.Failures = record.Failures{Count: guess.Current(i.Failures, at).Count + 1, At: at}
		i.Publish(s.db.Audit(event.AuthLoginFailed, user, event.AuthDetails{Method: record.MethodPasskey, Factor: ident, Reason: "signature"}))
		return nil
	})
	return record.IgnoreNotFound(err)
}
