// Package authenticator is a WebAuthn authenticator, with the browser around it, for tests: it keeps what the
// specification says, except where a test changes what it is about to sign or to send.
package authenticator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
)

// Algorithms of COSE.
const (
	ES256 = -7
	EdDSA = -8
	RS256 = -257
)

// Flags of authenticator data.
const (
	UserPresent    = 1 << 0
	UserVerified   = 1 << 2
	BackupEligible = 1 << 3
	BackedUp       = 1 << 4
	attested       = 1 << 6
)

// Credential is a passkey on an authenticator.
type Credential struct {
	*testing.T
	ID        []byte
	Algorithm int
	Origin    string // of the page
	Flags     byte   // of what it signs
	Counter   uint32 // of the next signature but one; 0: it does not count
	key       crypto.Signer
	handle    []byte
}

// Ceremony is what is about to be signed and sent.
type Ceremony struct {
	Type, Challenge, Origin string
	CrossOrigin             bool
	RPID                    string
	Flags                   byte
	Counter                 uint32
	ID                      []byte // of the credential
	UserHandle              []byte
	Key                     []byte         // COSE_Key of a registration
	Format                  string         // of its attestation
	Statement               map[string]any // of its attestation
	Transports              []string
	Signature               func(signature []byte) []byte // nil: as it is
}

// options of both ceremonies, as far as an authenticator uses them.
type options struct {
	PublicKey struct {
		Challenge string
		RPID      string
		RP        struct{ ID string }
		User      struct{ ID string }
		Params    []struct{ Alg int } `json:"pubKeyCredParams"`
	}
}

// Encode is base64url as WebAuthn uses it.
func Encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// New makes a credential with an id, and with a key of an algorithm, for pages of an origin.
func New(t *testing.T, algorithm int, origin string) *Credential {
	t.Helper()
	c := &Credential{T: t, ID: make([]byte, 32), Algorithm: algorithm, Origin: origin,
		Flags: UserPresent | UserVerified}
	_, _ = rand.Read(c.ID)
	var err error
	switch algorithm {
	case ES256:
		c.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case EdDSA:
		_, c.key, err = ed25519.GenerateKey(rand.Reader)
	default:
		c.key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Credential) read(text []byte) (o options) {
	c.Helper()
	if err := json.Unmarshal(text, &o); err != nil || o.PublicKey.Challenge == "" {
		c.Fatalf("options %s: %v", text, err)
	}
	return o
}

// Create replies to navigator.credentials.create.
func (c *Credential) Create(text []byte, change ...func(*Ceremony)) json.RawMessage {
	c.Helper()
	o := c.read(text)
	handle, err := base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID)
	if err != nil {
		c.Fatal(err)
	}
	c.handle = handle
	y := Ceremony{
		Type: "webauthn.create", Challenge: o.PublicKey.Challenge, Origin: c.Origin, RPID: o.PublicKey.RP.ID,
		Flags:   c.Flags | attested,
		Counter: c.Counter, ID: c.ID, Key: c.PublicKey(), Format: "none", Statement: map[string]any{},
		Transports: []string{"internal"},
	}
	for _, f := range change {
		f(&y)
	}
	data := y.authenticatorData()
	data = append(data, make([]byte, 16)...) // AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(y.ID)))
	data = append(append(data, y.ID...), y.Key...)
	if y.Format == "packed" && len(y.Statement) == 0 {
		y.Statement = map[string]any{"alg": c.Algorithm, "sig": c.sign(data, y.clientData())}
	}
	attestation, err := webauthncbor.Marshal(map[string]any{"fmt": y.Format, "attStmt": y.Statement, "authData": data})
	if err != nil {
		c.Fatal(err)
	}
	return c.reply(y, map[string]any{"clientDataJSON": Encode(y.clientData()), "attestationObject": Encode(attestation),
		"transports": y.Transports})
}

// Get replies to navigator.credentials.get.
func (c *Credential) Get(text []byte, change ...func(*Ceremony)) json.RawMessage {
	c.Helper()
	o := c.read(text)
	if c.Counter > 0 {
		c.Counter++
	}
	y := Ceremony{
		Type: "webauthn.get", Challenge: o.PublicKey.Challenge, Origin: c.Origin, RPID: o.PublicKey.RPID,
		Flags: c.Flags, Counter: c.Counter, ID: c.ID, UserHandle: c.handle,
	}
	for _, f := range change {
		f(&y)
	}
	data := y.authenticatorData()
	signature := c.sign(data, y.clientData())
	if y.Signature != nil {
		signature = y.Signature(signature)
	}
	return c.reply(y, map[string]any{
		"clientDataJSON": Encode(y.clientData()), "authenticatorData": Encode(data), "signature": Encode(signature),
		"userHandle": Encode(y.UserHandle),
	})
}

func (c *Credential) reply(y Ceremony, response map[string]any) json.RawMessage {
	c.Helper()
	text, err := json.Marshal(map[string]any{
		"id": Encode(y.ID), "rawId": Encode(y.ID), "type": "public-key", "authenticatorAttachment": "platform",
		"clientExtensionResults": map[string]any{}, "response": response,
	})
	if err != nil {
		c.Fatal(err)
	}
	return text
}

func (y Ceremony) clientData() []byte {
	text, _ := json.Marshal(map[string]any{"type": y.Type, "challenge": y.Challenge, "origin": y.Origin,
		"crossOrigin": y.CrossOrigin})
	return text
}

func (y Ceremony) authenticatorData() []byte {
	hash := sha256.Sum256([]byte(y.RPID))
	return binary.BigEndian.AppendUint32(append(hash[:], y.Flags), y.Counter)
}

func (c *Credential) sign(data, clientData []byte) []byte {
	c.Helper()
	hash := sha256.Sum256(clientData)
	message, method := append(append([]byte{}, data...), hash[:]...), crypto.Hash(0)
	if c.Algorithm != EdDSA {
		sum := sha256.Sum256(message)
		message, method = sum[:], crypto.SHA256
	}
	signature, err := c.key.Sign(rand.Reader, message, method)
	if err != nil {
		c.Fatal(err)
	}
	return signature
}

// PublicKey returns the public key as a COSE_Key.
func (c *Credential) PublicKey() []byte { return c.PublicKeyFor(c.Algorithm) }

// PublicKeyFor returns the public key with another algorithm in it.
func (c *Credential) PublicKeyFor(algorithm int) []byte {
	c.Helper()
	var key map[int]any
	switch public := c.key.Public().(type) {
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			c.Fatal(err)
		}
		key = map[int]any{1: 2, 3: algorithm, -1: 1, -2: point[1:33], -3: point[33:]}
	case ed25519.PublicKey:
		key = map[int]any{1: 1, 3: algorithm, -1: 6, -2: []byte(public)}
	case *rsa.PublicKey:
		key = map[int]any{1: 3, 3: algorithm, -1: public.N.Bytes(), -2: big.NewInt(int64(public.E)).Bytes()}
	}
	text, err := webauthncbor.Marshal(key)
	if err != nil {
		c.Fatal(err)
	}
	return text
}
