package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
)

// secretSize is how many random bytes a secret has.
const secretSize = 32

var b64 = base64.RawURLEncoding

// newSecret returns 256 random bits as text.
func newSecret() string { return randomText(secretSize) }

func randomText(size int) string {
	raw := make([]byte, size)
	_, _ = rand.Read(raw) // never fails
	return b64.EncodeToString(raw)
}

// digest is what is kept of a secret. Secrets are random, so a plain hash can't
// be searched.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return b64.EncodeToString(sum[:])
}

// isSecret reports whether a text is the secret whose digest this is.
func secretMatches(text, kept string) bool {
	return kept != "" && subtle.ConstantTimeCompare([]byte(digest(text)), []byte(kept)) == 1
}

// idSize is how many random bytes a session's id has.
const idSize = 16

// splitToken divides a session's token into the session's id and a secret.
func splitToken(token string) (id, secret string, ok bool) {
	size := b64.EncodedLen(idSize)
	if len(token) != size+b64.EncodedLen(secretSize) || strings.Trim(token, tokenLetters) != "" {
		return "", "", false
	}
	return token[:size], token[size:], true
}

const tokenLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
