// Package secret makes secrets of random bits, hashes and seals them, and normalizes typed ones.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"belfry/internal/seal"
	"belfry/pkg/errs"
)

// Size is how many random bytes a secret has.
const Size = 32

// B64 is the encoding of secrets and hashes.
var B64 = base64.RawURLEncoding

// Letters are the characters of B64.
const Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// New returns 256 random bits as text.
func New() string { return Random(Size) }

// Random returns a number of random bytes as text. It does not begin with a hyphen, so that a token can be the argument
// of a flag: belfry import --token $TOKEN.
func Random(size int) string {
	raw := make([]byte, size)
	for {
		_, _ = rand.Read(raw) // never fails
		if text := B64.EncodeToString(raw); text[0] != '-' {
			return text
		}
	}
}

// Digest is the hash of a secret, which is stored instead of it. Secrets have 256 random bits, so a plain hash can't be
// inverted by search.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return B64.EncodeToString(sum[:])
}

// Hex is the hash of a text as a part of a uuid.
func Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Matches reports whether a text is the secret with this digest.
func Matches(text, stored string) bool {
	return stored != "" && subtle.ConstantTimeCompare([]byte(Digest(text)), []byte(stored)) == 1
}

// sealedPrefix begins a secret that is encrypted; base32 has no colon.
const sealedPrefix = "sealed:"

// Seal returns a secret as it is stored: encrypted if the configuration has a key, and sealer is not nil.
func Seal(sealer *seal.Sealer, purpose, secret string) string {
	if sealer == nil {
		return secret
	}
	return sealedPrefix + sealer.Seal(purpose, []byte(secret))
}

// Open returns a secret that Seal has returned.
func Open(sealer *seal.Sealer, purpose, stored string) (string, error) {
	text, encrypted := strings.CutPrefix(stored, sealedPrefix)
	if !encrypted {
		return stored, nil
	}
	if sealer != nil {
		if secret, ok := sealer.Open(purpose, text); ok {
			return string(secret), nil
		}
	}
	return "", errs.New(errs.Internal,
		"a secret of a user was encrypted with a key that is not in authentication.encryptionKey")
}

// FirstValid returns the first valid secret, or the first one if none is valid. It calls how for the check, unless
// there is only one secret.
func FirstValid(secrets []string, how func() (is func(string) bool)) string {
	if len(secrets) == 0 {
		return ""
	}
	if len(secrets) > 1 {
		if is := how(); is != nil {
			if i := slices.IndexFunc(secrets, is); i >= 0 {
				return secrets[i]
			}
		}
	}
	return secrets[0]
}
