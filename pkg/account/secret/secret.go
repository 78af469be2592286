// Package secret makes secrets of random bits, hashes and seals them, and normalizes typed ones.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
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
