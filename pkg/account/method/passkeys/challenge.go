package passkeys

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/account/method"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// passkeyPurpose is the purpose of a challenge: its answer is valid only for that purpose.
type passkeyPurpose string

// ForLogin is the purpose of a login with only a passkey.
const ForLogin passkeyPurpose = "login"

// ForRegistration is the purpose of adding a passkey to the account of a session.
func ForRegistration(me *sessions.Session) passkeyPurpose {
	return passkeyPurpose("registration " + me.User.UUID + " " + me.ID)
}

// ForSecondFactor is the purpose of completing a login that waits for a second factor, or of authenticating a session
// again, by what identifies it.
func ForSecondFactor(pending string) passkeyPurpose {
	return passkeyPurpose("second factor " + pending)
}

// AnswerName is the name of the challenge that an answer is to, as in Challenge; "" for a malformed one.
func AnswerName(credential json.RawMessage) string {
	var answer struct {
		Response struct {
			ClientData protocol.URLEncodedBase64 `json:"clientDataJSON"`
		} `json:"response"`
	}
	var data struct {
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(credential, &answer) != nil || json.Unmarshal(answer.Response.ClientData, &data) != nil ||
		data.Challenge == "" {
		return ""
	}
	return challengeName(strings.TrimRight(data.Challenge, "="))
}

// challengeName is the name of a challenge: a part of its hash.
func challengeName(challenge string) string { return secret.Hex(challenge)[:12] }

// ChallengeUUID is the uuid of a challenge in the store of tokens.
func ChallengeUUID(challenge string) string { return record.KindChallenge + secret.Hex(challenge) }

// passkeyChallenge is the challenge that belongs to a secret. It is derived, so that the store of tokens holds no
// challenge. An answer only matches the client that requested the challenge.
func passkeyChallenge(of string) string { return secret.Digest("challenge:" + of) }

// saveChallenge makes a challenge for a purpose and returns its secret.
func (s *Method) saveChallenge(ctx context.Context,
	why passkeyPurpose) (made string, challenge protocol.URLEncodedBase64, err error) {
	made = secret.New()
	if _, err := s.DB.Tokens.Create(record.AsService(ctx, ""), ChallengeUUID(made),
		record.Token{Purpose: string(why), Expires: s.DB.Now().Add(TTL)}); err != nil {
		return "", nil, err
	}
	challenge, err = secret.B64.DecodeString(passkeyChallenge(made))
	return made, challenge, err
}

// errChallenge is for an answer to a challenge of another client, for another purpose, or that has ended.
func errChallenge() error {
	return errs.New(errs.Denied, "the challenge of this passkey was requested by another client, was answered, or is "+
		"older than 5 minutes: start again")
}

// consumeChallenge uses up a challenge, so that it is answered once, whether or not the answer is right. Of two
// concurrent calls one is Denied, with a Repetition once the same answer has succeeded.
func (s *Method) consumeChallenge(ctx context.Context, a method.Signed, why passkeyPurpose, act record.Act) error {
	ctx = record.AsService(ctx, "")
	if len(a.Secret) != secret.B64.EncodedLen(secret.Size) {
		return errChallenge()
	}
	uuid, answer := ChallengeUUID(a.Secret), secret.Digest(string(a.Credential))
	late, repeated := false, false
	_, err := s.DB.Tokens.Change(ctx, uuid, func(t *record.Token) error {
		if repeated = t.Use != nil && t.Use.Answer == answer && t.Use.Act == act; repeated {
			return record.ErrUnchanged
		}
		if t.Use != nil || t.Purpose != string(why) {
			return errChallenge()
		}
		late = !s.DB.Now().Before(t.Expires)
		s.Uses.UseUp(t, record.Use{Act: act, Provider: record.PasskeyType, Answer: answer})
		return nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return errChallenge()
	case err != nil:
		return err
	case repeated:
		return s.repeatedAnswer(ctx, a)
	case late:
		s.Uses.Settle(ctx, uuid, false)
		return errChallenge()
	}
	return nil
}

// repeatedAnswer returns the error of an answer that was sent before, once the result of the first one is known.
func (s *Method) repeatedAnswer(ctx context.Context, a method.Signed) error {
	u, err := s.Uses.AwaitUse(ctx, ChallengeUUID(a.Secret), once.NoneElse)
	if err != nil {
		return err
	}
	if u == nil {
		return errChallenge()
	}
	repeated := once.UsedBefore(*u, errs.Denied)
	once.Repeated(repeated).Known = a.Cookie
	return repeated
}

// Options makes a challenge for a purpose. For a known user, only the user's passkeys can answer it. Otherwise any
// passkey can, so that the options do not depend on a user.
func (s *Method) Options(ctx context.Context, user *record.User, why passkeyPurpose) (method.Challenge, error) {
	if err := s.requirePasskeys(); err != nil {
		return method.Challenge{}, err
	}
	options := protocol.PublicKeyCredentialRequestOptions{
		RelyingPartyID: s.Config.RPID, UserVerification: protocol.VerificationRequired,
		Timeout: int(TTL.Milliseconds()),
	}
	var err error
	if user != nil {
		if options.AllowedCredentials, err = s.Descriptors(record.AsService(ctx, user.UUID), user.UUID); err != nil {
			return method.Challenge{}, err
		}
		if options.AllowedCredentials == nil {
			return method.Challenge{}, errs.New(errs.NotFound, "the account has no passkey")
		}
	}
	made, challenge, err := s.saveChallenge(ctx, why)
	if err != nil {
		return method.Challenge{}, err
	}
	options.Challenge = challenge
	text, err := json.Marshal(protocol.CredentialAssertion{Response: options})
	return method.Challenge{Options: text, Secret: made, Name: challengeName(passkeyChallenge(made))}, err
}

// BeginLogin makes the challenge of a login. It is the same for all clients.
func (s *Method) BeginLogin(ctx context.Context, from sessions.Client) (method.Challenge, error) {
	if err := s.requirePasskeys(); err != nil {
		return method.Challenge{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return method.Challenge{}, err
	}
	return s.Options(ctx, nil, ForLogin)
}
