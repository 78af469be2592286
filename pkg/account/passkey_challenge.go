package account

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// passkeyPurpose is what a challenge was made for: the answer to it is of no use for anything else.
type passkeyPurpose string

// passkeyLogin is the purpose of a login by a passkey alone.
const passkeyLogin passkeyPurpose = "login"

// passkeyRegistration is the purpose of adding a passkey to the account of a session.
func passkeyRegistration(me *Session) passkeyPurpose {
	return passkeyPurpose("registration " + me.User.UUID + " " + me.ID)
}

// passkeySecondFactor is the purpose of completing a login that waits for a second factor, or of authenticating a session again, by what
// identifies it.
func passkeySecondFactor(pending string) passkeyPurpose {
	return passkeyPurpose("second factor " + pending)
}

// fieldPurpose of a challenge in the store of tokens.
const fieldPurpose = "_purpose"

// PasskeyChallenge is what a client needs to ask an authenticator.
type PasskeyChallenge struct {
	Options json.RawMessage // {"publicKey": ...}, for navigator.credentials
	Secret  string          // binds the challenge to the client: a cookie, or a field of the answer
	Name    string          // distinguishes the cookies of challenges, of which each tab has its own
}

// PasskeyAnswer is the answer to a challenge.
type PasskeyAnswer struct {
	Credential json.RawMessage // a PublicKeyCredential, as its toJSON makes it
	Secret     string          // of the challenge
	Cookie     bool            // Secret comes from a cookie
}

// AnswerName is the name of the challenge that an answer is to, as in PasskeyChallenge; "" for what is no answer.
func AnswerName(credential json.RawMessage) string {
	var answer struct {
		Response struct {
			ClientData protocol.URLEncodedBase64 `json:"clientDataJSON"`
		} `json:"response"`
	}
	var data struct {
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(credential, &answer) != nil || json.Unmarshal(answer.Response.ClientData, &data) != nil || data.Challenge == "" {
		return ""
	}
	return challengeName(strings.TrimRight(data.Challenge, "="))
}

// challengeName is the name of a challenge: a part of its hash.
func challengeName(challenge string) string { return hexDigest(challenge)[:12] }

// passkeyUUID is the uuid of a challenge in the store of tokens.
func passkeyUUID(secret string) string { return "passkey-" + hexDigest(secret) }

// passkeyChallenge is the challenge that belongs to a secret. It is derived, so that the store of tokens
// holds none: an answer fits to the client that asked, and to no other.
func passkeyChallenge(secret string) string { return digest("challenge:" + secret) }

// saveChallenge makes a challenge for a purpose and returns its secret.
func (s *Service) saveChallenge(ctx context.Context, why passkeyPurpose) (secret string, challenge protocol.URLEncodedBase64, err error) {
	secret = newSecret()
	o := object.Object{}
	o.Set(fieldPurpose, why)
	o.Set(fieldExpires, timestamp(s.now().Add(PasskeyTTL)))
	if _, err := s.tokens.Save(asService(ctx, ""), o, passkeyUUID(secret)); err != nil {
		return "", nil, err
	}
	challenge, err = b64.DecodeString(passkeyChallenge(secret))
	return secret, challenge, err
}

// errChallenge is for an answer to a challenge that is not this client's, not for this, or over.
func errChallenge() error {
	return errs.New(errs.Denied, "the challenge of this passkey was not asked for here, has been answered, or is older than 5 minutes: begin again")
}

// consumeChallenge uses up a challenge, so that it is answered once, whether or not the answer is right. Of two
// concurrent calls one is Denied: with a Repetition, once the same answer has succeeded.
func (s *Service) consumeChallenge(ctx context.Context, a PasskeyAnswer, why passkeyPurpose, act Act) error {
	ctx = asService(ctx, "")
	if len(a.Secret) != b64.EncodedLen(secretSize) {
		return errChallenge()
	}
	uuid, answer := passkeyUUID(a.Secret), digest(string(a.Credential))
	late, repeated := false, false
	_, err := s.tokens.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		u, used := useOf(o)
		if repeated = used && u.Answer == answer && u.Act == act; repeated {
			return store.Mutation{}, nil
		}
		if is, _ := o.Text(fieldPurpose); used || is != string(why) {
			return store.Mutation{}, errChallenge()
		}
		late = !s.now().Before(timeField(o, fieldExpires))
		return store.Mutation{Fields: s.usedFields(o, use{Act: act, Provider: PasskeyType, Answer: answer})}, nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return errChallenge()
	case err != nil:
		return err
	case repeated:
		return s.repeatedAnswer(ctx, a)
	case late:
		s.settle(ctx, uuid, false)
		return errChallenge()
	}
	return nil
}

// repeatedAnswer returns the error of an answer that was sent before, once it is known how that has ended.
func (s *Service) repeatedAnswer(ctx context.Context, a PasskeyAnswer) error {
	u, used, err := s.awaitUse(ctx, passkeyUUID(a.Secret), noneElse)
	if err != nil {
		return err
	}
	if !used {
		return errChallenge()
	}
	repeated := u.repeated(errs.Denied)
	Repeated(repeated).Known = a.Cookie
	return repeated
}

// passkeyOptions makes a challenge for a purpose. With a user, who is known already, only their passkeys answer it;
// without one any does, so that the options depend on nobody.
func (s *Service) passkeyOptions(ctx context.Context, user *store.Stored, why passkeyPurpose) (PasskeyChallenge, error) {
	if err := s.requirePasskeys(); err != nil {
		return PasskeyChallenge{}, err
	}
	options := protocol.PublicKeyCredentialRequestOptions{
		RelyingPartyID: s.passkeys.RPID, UserVerification: protocol.VerificationRequired, Timeout: int(PasskeyTTL.Milliseconds()),
	}
	var err error
	if user != nil {
		if options.AllowedCredentials, err = s.passkeyDescriptors(asService(ctx, user.UUID), user.UUID); err != nil {
			return PasskeyChallenge{}, err
		}
		if options.AllowedCredentials == nil {
			return PasskeyChallenge{}, errs.New(errs.NotFound, "the account has no passkey")
		}
	}
	secret, challenge, err := s.saveChallenge(ctx, why)
	if err != nil {
		return PasskeyChallenge{}, err
	}
	options.Challenge = challenge
	text, err := json.Marshal(protocol.CredentialAssertion{Response: options})
	return PasskeyChallenge{Options: text, Secret: secret, Name: challengeName(passkeyChallenge(secret))}, err
}

// BeginPasskeyLogin makes the challenge of a login. It is the same for everybody.
func (s *Service) BeginPasskeyLogin(ctx context.Context, from Client) (PasskeyChallenge, error) {
	if err := s.requirePasskeys(); err != nil {
		return PasskeyChallenge{}, err
	}
	if err := s.takeAttempt(from); err != nil {
		return PasskeyChallenge{}, err
	}
	return s.passkeyOptions(ctx, nil, passkeyLogin)
}
