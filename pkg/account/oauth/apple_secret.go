package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"belfry/config"
	"belfry/pkg/errs"
)

// How long a secret is valid. Apple permits six months, but a leaked secret, for example in the log of a proxy, should
// soon be useless.
const (
	appleSecretTTL   = 5 * time.Minute
	appleSecretReuse = appleSecretTTL / 2

	// appleSkew is how much the clock may be ahead of Apple's.
	appleSkew = time.Minute
)

// appleSecret makes the secrets of a client, which are JWTs signed with its key.
// https://developer.apple.com/documentation/accountorganizationaldatasharing/creating-a-client-secret
type appleSecret struct {
	signer jose.Signer
	claims map[string]any // without times; the library would write aud as a list
	now    func() time.Time

	mu   sync.Mutex
	text string
	made time.Time
}

// newAppleSecret makes secrets with a PrivateKey that has the content of the file AuthKey_<KeyID>.p8.
func newAppleSecret(c config.Apple) (*appleSecret, error) {
	private, err := parseAppleKey(string(c.PrivateKey))
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: private, KeyID: c.KeyID}}, nil)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the privateKey can't sign")
	}
	return &appleSecret{
		signer: signer, now: time.Now,
		claims: map[string]any{"iss": c.TeamID, "sub": c.ClientID, "aud": c.Issuer},
	}, nil
}

// parseAppleKey parses a .p8 file. No error contains a part of it.
func parseAppleKey(text string) (*ecdsa.PrivateKey, error) {
	// Variables of the environment often have no line breaks.
	block, _ := pem.Decode([]byte(strings.ReplaceAll(strings.TrimSpace(text), `\n`, "\n") + "\n"))
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errs.New(errs.Invalid, "the privateKey is not a private key: expected the content of a file "+
			"AuthKey_*.p8 from Apple, which begins with -----BEGIN PRIVATE KEY-----")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errs.New(errs.Invalid,
			"the privateKey can't be read: expected the content of a file AuthKey_*.p8 from Apple, unchanged")
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, errs.New(errs.Invalid, "the privateKey is not a key of the curve P-256, as keys from Apple are")
	}
	return private, nil
}

// current returns a secret that is valid for at least half of appleSecretTTL.
func (s *appleSecret) current() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if age := now.Sub(s.made); s.text != "" && age >= 0 && age < appleSecretReuse {
		return s.text, nil
	}
	claims := maps.Clone(s.claims)
	claims["iat"], claims["exp"] = now.Add(-appleSkew).Unix(), now.Add(appleSecretTTL).Unix()
	text, err := jwt.Signed(s.signer).Claims(claims).Serialize()
	if err != nil {
		return "", errs.New(errs.Internal, "the client secret for apple could not be signed")
	}
	s.text, s.made = text, now
	return text, nil
}
