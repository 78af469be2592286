package record

import (
	"cmp"
	"encoding/json"
	"time"
)

// Ident is the record of an identity of a user. Its uuid is made of the identity, and it is created only if absent, so
// that an identity never belongs to two users.
type Ident struct {
	Meta

	User    string          `record:"user" left:"stays, stays, stays, stays"`
	Type    string          `record:"type" left:"stays, stays, stays, stays"` // the provider
	ID      string          `record:"_id" left:"stays, stays, stays, stays"`  // the provider's id of the user
	Profile json.RawMessage `record:"profile" left:"stays, stays, stays, stays"`

	Validated bool `record:"validated,keep" left:"is set, is set, is set, stays"`

	// Proven marks an ident whose address was proven by the owner of the account. If only Validated is set, the account
	// may be a stranger's, and the address's owner followed the link. ProvenAt is the time of the proof, if it is later
	// than the creation of the ident.
	Proven   bool   `record:"_proven,keep" left:"stays, is set, is set, stays"`
	ProvenAt string `record:"_provenAt" left:"stays, is set, stays, stays"`

	// to an existing account; if nobody had proven it, it moves to an account of its own
	Added bool    `record:"_added" left:"stays, stays, stays, stays"`
	Epoch *uint64 `record:"_epoch" left:"stays, stays, stays, stays"` // of the session that has linked it

	Failures Failures  `record:"_failedLogins" left:"is set, is set, is set, is set"`
	LastUsed time.Time `record:"lastUsed" left:"stays, stays, stays, stays"`
	Invited  time.Time `record:"_invited" left:"stays, stays, stays, stays"` // when an admin last did, by mail

	// Of a provider that keeps tokens.
	Tokens string `record:"_tokens" left:"stays, ends, undoes, stays"` // sealed for the ident
	// holder of the refresh, and until when others wait
	Lease Lease `record:"_refresh" left:"stays, ends, undoes, stays"`

	// Of a passkey.
	Name       string      `record:"name" left:"stays, ends, undoes, stays"`
	Credential *Credential `record:"_credential" left:"stays, ends, undoes, stays"`
	// when its signature counter decreased
	CloneSuspected string `record:"cloneSuspected" left:"stays, ends, undoes, stays"`
}

// Lease is the right to refresh tokens.
type Lease struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

// Credential is the WebAuthn credential of a passkey.
type Credential struct {
	PublicKey      []byte   `json:"publicKey"` // COSE_Key
	SignCount      uint32   `json:"signCount"`
	AAGUID         []byte   `json:"aaguid,omitempty"` // the model of the authenticator, which it does not prove
	BackupEligible bool     `json:"backupEligible"`   // it can be copied to other devices of its user
	BackedUp       bool     `json:"backedUp"`
	Transports     []string `json:"transports,omitempty"`
}

func (i *Ident) owner() string { return i.User }

// ProvenSince returns the time since when an ident is proven; "" for an unproven one.
func (i Ident) ProvenSince() string {
	if !i.Proven {
		return ""
	}
	return cmp.Or(i.ProvenAt, i.Created)
}

// AwaitsFirst reports whether the user of an ident was invited, and has neither set a password nor logged in with it.
func (i Ident) AwaitsFirst(user User) bool {
	return !i.Invited.IsZero() && i.LastUsed.IsZero() && user.Password == ""
}

// IsAddress reports whether an ident is an e-mail address.
func (i Ident) IsAddress() bool { return i.Type == Email && i.ID != "" }

// LinkedIn is the epoch of the session that has linked an ident.
func (i Ident) LinkedIn() uint64 {
	if i.Epoch == nil {
		return 0
	}
	return *i.Epoch
}
