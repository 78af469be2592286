package account

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// secretSize is how many random bytes a secret has.
const secretSize = 32

var b64 = base64.RawURLEncoding

// newSecret returns 256 random bits as text.
func newSecret() string { return randomText(secretSize) }

// randomText does not begin with a hyphen, so that a token can be the argument of a flag:
// belfry import --token $TOKEN.
func randomText(size int) string {
	raw := make([]byte, size)
	for {
		_, _ = rand.Read(raw) // never fails
		if text := b64.EncodeToString(raw); text[0] != '-' {
			return text
		}
	}
}

// digest is the hash of a secret, which is stored in its place. Secrets have 256
// random bits, so a plain hash can't be inverted by search.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return b64.EncodeToString(sum[:])
}

// hexDigest is the hash of a text as a part of a uuid.
func hexDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// secretMatches reports whether a text is the secret with this digest.
func secretMatches(text, stored string) bool {
	return stored != "" && subtle.ConstantTimeCompare([]byte(digest(text)), []byte(stored)) == 1
}

// idSize is how many random bytes a session's id has.
const idSize = 16

// splitToken splits a session's token into the session's id and a secret.
func splitToken(token string) (id, secret string, ok bool) {
	size := b64.EncodedLen(idSize)
	if len(token) != size+b64.EncodedLen(secretSize) || strings.Trim(token, tokenLetters) != "" {
		return "", "", false
	}
	return token[:size], token[size:], true
}

const tokenLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
