package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// A passkey is an ident whose id is that of a WebAuthn credential. Its public key and what an authenticator reports
// besides are in an internal field; its name and its last use are for people.
const (
	// PasskeyType is the type of idents that are passkeys.
	PasskeyType = "passkey"

	// maxPasskeys is how many passkeys a user can have.
	maxPasskeys = 50

	maxPasskeyName = 100

	// defaultPasskeyName is that of a passkey without one.
	defaultPasskeyName = "Passkey"
)

// Fields of an ident that is a passkey, besides those of every ident and fieldName.
const (
	fieldCredential     = "_credential"    //nolint:gosec // no credential
	fieldCloneSuspected = "cloneSuspected" // when its signature counter went back
)

// Passkeys configure logins by passkey.
type Passkeys struct {
	RPID    string   // the domain that passkeys are bound to: it can't be changed later
	RPName  string   // what authenticators show
	Origins []string // of the pages that may use them
}

// passkey is the credential of an ident.
type passkey struct {
	PublicKey      []byte   `json:"publicKey"` // COSE_Key
	SignCount      uint32   `json:"signCount"`
	AAGUID         []byte   `json:"aaguid,omitempty"` // the model of the authenticator, which it does not prove
	BackupEligible bool     `json:"backupEligible"`   // it can be copied to other devices of its user
	BackedUp       bool     `json:"backedUp"`
	Transports     []string `json:"transports,omitempty"`
}

// passkeyOf returns the credential of an ident; false for another one.
func passkeyOf(ident object.Object) (p passkey, ok bool) {
	kind, _ := ident.Text("type")
	ok = kind == PasskeyType && json.Unmarshal(ident[fieldCredential], &p) == nil && len(p.PublicKey) > 0
	return p, ok
}

// PasskeyInfo is a passkey as its user sees it.
type PasskeyInfo struct {
	UUID     string `json:"uuid"` // of the ident
	Type     string `json:"type"`
	Name     string `json:"name"`
	Created  string `json:"created"`
	LastUsed string `json:"lastUsed,omitempty"` // absent before the first login with it
	BackedUp bool   `json:"backedUp"`           // to an account of its user elsewhere, by what the authenticator said last

	// CloneSuspected is when its signature counter last went back: somebody may have a copy. Absent: never.
	CloneSuspected string `json:"cloneSuspected,omitempty"`
}

func passkeyInfo(uuid string, ident object.Object, p passkey) PasskeyInfo {
	text := func(name string) string { t, _ := ident.Text(name); return t }
	return PasskeyInfo{
		UUID: uuid, Type: PasskeyType, Name: text(fieldName), Created: text("created"), LastUsed: text("lastUsed"),
		BackedUp: p.BackedUp, CloneSuspected: text(fieldCloneSuspected),
	}
}

// PasskeysEnabled reports whether users can log in by passkey.
func (s *Service) PasskeysEnabled() bool { return s.passkeys != nil }

// requirePasskeys reports NotFound when passkeys are not configured.
func (s *Service) requirePasskeys() error {
	if s.passkeys == nil {
		return errs.New(errs.NotFound, "passkeys are not configured")
	}
	return nil
}

// passkeyAlgorithms are the algorithms of keys that belfry accepts, the preferred one first. A key is bound to its
// algorithm: no signature is checked by another.
func passkeyAlgorithms() []protocol.CredentialParameter {
	var all []protocol.CredentialParameter
	for _, a := range []webauthncose.COSEAlgorithmIdentifier{webauthncose.AlgES256, webauthncose.AlgEdDSA, webauthncose.AlgRS256} {
		all = append(all, protocol.CredentialParameter{Type: protocol.PublicKeyCredentialType, Algorithm: a})
	}
	return all
}

// userHandle is what authenticators know a user by. It is a hash, because a uuid may be an address, and
// longer than the 64 bytes that a handle may have.
func userHandle(user string) string { return digest("user handle:" + user) }

// passkeyIdentity is the identity of a credential.
func passkeyIdentity(credential []byte) identity {
	return identity{providerID: b64.EncodeToString(credential), provider: PasskeyType, profile: object.Object{}, validated: true}
}

// ListPasskeys returns the passkeys of the user who is logged in, the oldest first.
func (s *Service) ListPasskeys(ctx context.Context, me *Session) ([]PasskeyInfo, error) {
	list := []PasskeyInfo{}
	err := s.passkeysOf(asService(ctx, me.User.UUID), me.User.UUID, func(uuid string, ident object.Object, p passkey) {
		list = append(list, passkeyInfo(uuid, ident, p))
	})
	slices.SortFunc(list, func(a, b PasskeyInfo) int { return strings.Compare(a.Created+a.UUID, b.Created+b.UUID) })
	return list, err
}

// passkeysOf calls each with the passkeys of a user.
func (s *Service) passkeysOf(ctx context.Context, user string, each func(uuid string, ident object.Object, p passkey)) error {
	return forEachOwned(ctx, s.idents, user, func(ident store.Stored, o object.Object) error {
		if p, ok := passkeyOf(o); ok {
			each(ident.UUID, o, p)
		}
		return nil
	})
}

// passkeyDescriptors are the credentials of a user as a client is asked for, or to avoid, them.
func (s *Service) passkeyDescriptors(ctx context.Context, user string) (all []protocol.CredentialDescriptor, err error) {
	err = s.passkeysOf(ctx, user, func(_ string, ident object.Object, p passkey) {
		text, _ := ident.Text("_id")
		id, err := b64.DecodeString(text)
		if err != nil {
			return
		}
		d := protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: id}
		for _, t := range p.Transports {
			d.Transport = append(d.Transport, protocol.AuthenticatorTransport(t))
		}
		all = append(all, d)
	})
	return all, err
}

// errNoPasskey is for a passkey that is not of the user.
func errNoPasskey() error { return errs.New(errs.NotFound, "you have no passkey with this uuid") }

// RenamePasskey renames a passkey of the user who is logged in. NotFound when it is not theirs; Invalid.
func (s *Service) RenamePasskey(ctx context.Context, me *Session, uuid, name string) (PasskeyInfo, error) {
	if err := errors.Join(s.requirePasskeys(), RequireLogin(me)); err != nil {
		return PasskeyInfo{}, err
	}
	if err := checkPasskeyName(name); err != nil {
		return PasskeyInfo{}, err
	}
	if !object.ValidUUID(uuid) {
		return PasskeyInfo{}, errNoPasskey()
	}
	var p passkey
	stored, err := s.idents.Mutate(asService(ctx, me.User.UUID), uuid, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		found, ok := passkeyOf(o)
		if owner, _ := o.Text(fieldUser); !ok || owner != me.User.UUID {
			return store.Mutation{}, errNoPasskey()
		}
		p = found
		fields := object.Object{}
		fields.Set(fieldName, name)
		return store.Mutation{Fields: fields}, nil
	})
	if errors.Is(err, errs.NotFound) {
		return PasskeyInfo{}, errNoPasskey()
	}
	if err != nil {
		return PasskeyInfo{}, err
	}
	o, err := stored.Object()
	return passkeyInfo(stored.UUID, o, p), err
}

// checkPasskeyName reports Invalid for a name that a passkey can't have.
func checkPasskeyName(name string) error {
	if n := len(name); n > 0 && n <= maxPasskeyName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: "the passkey can't have this name", Fields: []errs.Field{{Pointer: "/" + fieldName,
		Message: fmt.Sprintf("must have 1 to %d bytes, without control characters, or spaces at its ends", maxPasskeyName)}}}
}

// isPasskey reports whether an ident is a passkey.
func isPasskey(ident store.Stored) bool {
	kind, _ := object.Text(object.Field(ident.Body, "type"))
	return kind == PasskeyType
}

// PasskeyTTL is how long a challenge is valid.
const PasskeyTTL = 5 * time.Minute
