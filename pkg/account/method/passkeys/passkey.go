package passkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// A passkey is an ident whose id is that of a WebAuthn credential. Its public key and the authenticator's other data
// are in an internal field; its name and its last use are for people.
const (
	// maxPasskeys is how many passkeys a user can have.
	maxPasskeys = 50

	maxPasskeyName = 100

	// defaultPasskeyName is the name of a passkey without one.
	defaultPasskeyName = "Passkey"
)

// Info is a passkey, as its user sees it.
type Info struct {
	UUID     string `json:"uuid"` // of the ident
	Type     string `json:"type"`
	Name     string `json:"name"`
	Created  string `json:"created"`
	LastUsed string `json:"lastUsed,omitempty"` // absent before the first login with it
	// to another device or account of its user, as last reported by the authenticator
	BackedUp bool `json:"backedUp"`

	// CloneSuspected is the time at which its signature counter last decreased: somebody may have a copy. Absent:
	// never.
	CloneSuspected string `json:"cloneSuspected,omitempty"`
}

func passkeyInfo(i record.Ident) Info {
	return Info{
		UUID: i.UUID, Type: record.PasskeyType, Name: i.Name, Created: i.Created, LastUsed: record.TimeText(i.LastUsed),
		BackedUp: i.Credential.BackedUp, CloneSuspected: i.CloneSuspected,
	}
}

// Enabled reports whether users can log in by passkey.
func (s *Method) Enabled() bool { return s.Config != nil }

// requirePasskeys reports NotFound when passkeys are not configured.
func (s *Method) requirePasskeys() error {
	if s.Config == nil {
		return errs.New(errs.NotFound, "passkeys are not configured")
	}
	return nil
}

// passkeyAlgorithms are the algorithms of keys that belfry accepts, the preferred one first. A key is bound to its
// algorithm: no signature is checked by another.
func passkeyAlgorithms() []protocol.CredentialParameter {
	var all []protocol.CredentialParameter
	for _, a := range []webauthncose.COSEAlgorithmIdentifier{webauthncose.AlgES256, webauthncose.AlgEdDSA,
		webauthncose.AlgRS256} {
		all = append(all, protocol.CredentialParameter{Type: protocol.PublicKeyCredentialType, Algorithm: a})
	}
	return all
}

// userHandle identifies a user to authenticators. It is a hash, because a uuid may be an address, and
// longer than the 64 bytes that a handle may have.
func userHandle(user string) string { return secret.Digest("user handle:" + user) }

// passkeyIdentity is the identity of a credential.
func passkeyIdentity(credential []byte) users.Identity {
	return users.Identity{Identity: record.Identity{ID: secret.B64.EncodeToString(credential),
		Provider: record.PasskeyType, Profile: object.Object{}, Validated: true}}
}

// List returns the passkeys of the logged-in user, the oldest first.
func (s *Method) List(ctx context.Context, me *sessions.Session) ([]Info, error) {
	list := []Info{}
	for ident, err := range s.Links.PasskeysOf(record.AsService(ctx, me.User.UUID), me.User.UUID) {
		if err != nil {
			return list, err
		}
		list = append(list, passkeyInfo(ident))
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Created+a.UUID, b.Created+b.UUID) })
	return list, nil
}

// Descriptors are the credentials of a user, to request or to exclude in a client.
func (s *Method) Descriptors(ctx context.Context, user string) (all []protocol.CredentialDescriptor, err error) {
	for ident, err := range s.Links.PasskeysOf(ctx, user) {
		if err != nil {
			return all, err
		}
		id, err := secret.B64.DecodeString(ident.ID)
		if err != nil {
			continue
		}
		d := protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: id}
		for _, t := range ident.Credential.Transports {
			d.Transport = append(d.Transport, protocol.AuthenticatorTransport(t))
		}
		all = append(all, d)
	}
	return all, nil
}

// errNoPasskey is for a passkey that is not of the user.
func errNoPasskey() error { return errs.New(errs.NotFound, "you have no passkey with this uuid") }

// Rename renames a passkey of the logged-in user. NotFound if it is not a passkey of the user; Invalid.
func (s *Method) Rename(ctx context.Context, me *sessions.Session, uuid, name string) (Info, error) {
	if err := errors.Join(s.requirePasskeys(), sessions.RequireLogin(me)); err != nil {
		return Info{}, err
	}
	if err := checkPasskeyName(name); err != nil {
		return Info{}, err
	}
	if !object.ValidUUID(uuid) {
		return Info{}, errNoPasskey()
	}
	renamed, err := s.DB.Idents.Change(record.AsService(ctx, me.User.UUID), uuid, func(i *record.Ident) error {
		if !links.IsPasskey(*i) || i.User != me.User.UUID {
			return errNoPasskey()
		}
		i.Name = name
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		return Info{}, errNoPasskey()
	}
	if err != nil {
		return Info{}, err
	}
	return passkeyInfo(renamed), nil
}

// checkPasskeyName reports Invalid for a name that a passkey can't have.
func checkPasskeyName(name string) error {
	if n := len(name); n > 0 && n <= maxPasskeyName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: "the passkey can't have this name",
		Fields: []errs.Field{{Pointer: "/name",
			Message: fmt.Sprintf("must have 1 to %d bytes, without control characters, or spaces at its ends",
				maxPasskeyName)}}}
}

// TTL is how long a challenge is valid.
const TTL = 5 * time.Minute

// ChallengeSecret returns the secret of the challenge with a name.
func ChallengeSecret(name string, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool { return challengeName(passkeyChallenge(secret)) == name }
	})
}
