package passkeys

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/method"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// errPasskey does not reveal the error of a passkey.
func errPasskey(cause error) error {
	const message = "the passkey is not known here, or its answer is wrong"
	if cause == nil {
		return errs.New(errs.Denied, message)
	}
	return errs.Wrap(cause, errs.Denied, message)
}

// errClone is for a passkey that may have been copied.
func errClone() error {
	return errs.New(errs.Denied, "the signature counter of this passkey decreased: somebody may have a copy of it. "+
		"Log in by another method, remove the passkey, and end unknown sessions")
}

// Verify verifies the answer to a challenge that Options made for a purpose, and returns the user and the ident of the
// passkey. expected is the user who has to answer; nil: any. The answer is valid once: the challenge is consumed before
// it counts, and its signature counter is recorded before the user has proven anything. Without an error the caller
// settles the use of the challenge.
//
// Errors: Invalid for an answer that can't be read; Denied, with a Repetition for an answer that was sent before.
func (s *Method) Verify(ctx context.Context, a method.Signed, expected *record.User, why passkeyPurpose,
	act record.Act) (user record.User, ident record.Ident, err error) {
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
		s.Uses.Settle(ctx, ChallengeUUID(a.Secret), false)
	}
	return user, ident, err
}

// verifyAnswer verifies an answer whose challenge was used up for it.
func (s *Method) verifyAnswer(ctx context.Context, a method.Signed, expected *record.User,
	parsed *protocol.ParsedCredentialAssertionData) (user record.User, ident record.Ident, err error) {
	ctx = record.AsService(ctx, "")
	user, ident, err = s.DB.FindOwner(ctx, passkeyIdentity(parsed.RawID).Identity)
	if err != nil {
		return user, ident, err
	}
	if user.UUID == "" || expected != nil && user.UUID != expected.UUID {
		return record.User{}, record.Ident{}, errPasskey(nil)
	}
	if !links.IsPasskey(ident) {
		return user, ident, errPasskey(nil)
	}
	if err := s.VerifyAssertion(parsed, *ident.Credential, user.UUID, passkeyChallenge(a.Secret),
		expected != nil); err != nil {
		owner, used := user.UUID, ident.UUID
		s.Sessions.RunInBackground(record.AsService(ctx, owner), "recording a failed login",
			func(ctx context.Context) error {
				return s.recordPasskeyFailure(ctx, owner, used)
			})
		return record.User{}, record.Ident{}, errPasskey(err)
	}
	ident, err = s.recordAssertion(ctx, user.UUID, ident.UUID, *ident.Credential, parsed.Response.AuthenticatorData)
	return user, ident, err
}

// VerifyAssertion returns an error unless the answer is the credential's answer to the challenge. If no credentials
// were requested by id, the authenticator has to name the user.
func (s *Method) VerifyAssertion(parsed *protocol.ParsedCredentialAssertionData, p record.Credential,
	user, challenge string, asked bool) error {
	handle := secret.B64.EncodeToString(parsed.Response.UserHandle)
	if handle != userHandle(user) && (handle != "" || !asked) {
		return errors.New("the user handle is not that of the user")
	}
	err := parsed.Verify(challenge, s.Config.RPID, "", s.Config.Origins, nil, nil,
		protocol.TopOriginExplicitVerificationMode, false, true, true, p.PublicKey, protocol.SignaturePolicy{})
	if err != nil {
		return err
	}
	flags := parsed.Response.AuthenticatorData.Flags
	if flags.HasBackupEligible() != p.BackupEligible {
		return errors.New("the authenticator has changed whether the passkey can be backed up")
	}
	return checkBackup(flags)
}

// recordAssertion records the use of a passkey: its signature counter, atomically with the check that it has increased.
// If the authenticator counts and the counter has not increased, the answer was signed by a copy, or before a recorded
// use: it is refused, and the passkey is marked.
func (s *Method) recordAssertion(ctx context.Context, user, ident string, verified record.Credential,
	data protocol.AuthenticatorData) (record.Ident, error) {
	suspected := false
	changed, err := s.DB.Idents.Change(record.AsService(ctx, user), ident, func(i *record.Ident) error {
		if !links.IsPasskey(*i) || i.User != user || !bytes.Equal(i.Credential.PublicKey, verified.PublicKey) {
			return errPasskey(nil) // removed, and registered again, meanwhile
		}
		at, p := s.DB.Now(), i.Credential
		if suspected = data.Counter <= p.SignCount && (data.Counter != 0 || p.SignCount != 0); suspected {
			i.CloneSuspected = record.Timestamp(at)
			i.Publish(s.DB.Audit(event.AuthCloneSuspected, user,
				event.AuthDetails{Method: record.MethodPasskey, Factor: ident}))
			return nil
		}
		p.SignCount, p.BackedUp = data.Counter, data.Flags.HasBackupState()
		users.SetUsed(i, at)
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

// recordPasskeyFailure records in a passkey that its answer was wrong. It causes no delay, because signatures can't be
// guessed.
func (s *Method) recordPasskeyFailure(ctx context.Context, user, ident string) error {
	_, err := s.DB.Idents.Change(ctx, ident, func(i *record.Ident) error {
		at := s.DB.Now()
		i.Failures = record.Failures{Count: guess.Current(i.Failures, at).Count + 1, At: at}
		i.Publish(s.DB.Audit(event.AuthLoginFailed, user,
			event.AuthDetails{Method: record.MethodPasskey, Factor: ident, Reason: "signature"}))
		return nil
	})
	return record.IgnoreNotFound(err)
}
