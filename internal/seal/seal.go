// Package seal makes texts that clients keep and send back, such as the ids of events and the cursors of lists, and
// those of secrets that belfry stores. A client can neither read such a text nor make one, and can't tell whether two
// have the same content.
package seal

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/chacha20poly1305"
)

// KeySize is the length of a key in bytes.
const KeySize = chacha20poly1305.KeySize

// Letters are the characters of a text.
const Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// EncodedLen returns the length of a text whose content has so many bytes.
func EncodedLen(content int) int { return b64.EncodedLen(Overhead + content) }

// Overhead is how many bytes a text has, before it is encoded in base64url, beyond those
// of its content.
const Overhead = 1 + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

// format is the first byte of the encoding: XChaCha20-Poly1305, then the nonce, which
// is random. Its 24 bytes never repeat, however many texts are sealed.
const format = 1

var b64 = base64.RawURLEncoding.Strict()

// Sealer seals texts with one key, and opens those that were sealed with it or with an
// earlier one that has not ended. It is safe for concurrent use.
type Sealer struct {
	ring atomic.Pointer[keyring]
	now  func() time.Time
}

// NewKey returns a random key.
func NewKey() []byte {
	key := make([]byte, KeySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// New returns a Sealer with a key of KeySize bytes; errs.Internal for any other, which
// the error does not contain. Processes with the same key open each other's texts.
func New(key []byte) (*Sealer, error) {
	return NewWithKeys([]Key{{Secret: key}}, time.Now)
}

// Seal returns a text of Letters, which is safe in a URL. It can be
// opened for the same purpose only. Its length reveals that of the content: pad
// content whose length is a secret.
func (s *Sealer) Seal(purpose string, content []byte) string {
	sealed := make([]byte, 1+chacha20poly1305.NonceSizeX, Overhead+len(content))
	sealed[0] = format
	_, _ = rand.Read(sealed[1:]) // never fails
	return b64.EncodeToString(s.sealing().Seal(sealed, sealed[1:], content, []byte(purpose)))
}

// Open returns the content of a text that was sealed for the purpose. It reports false for
// any other text: one that was changed or made up, or sealed for another purpose or with
// a key that this Sealer does not have or that has ended.
func (s *Sealer) Open(purpose, text string) (content []byte, ok bool) {
	nonce, rest, ok := parts(text)
	if !ok {
		return nil, false
	}
	ok = s.opening(func(aead cipher.AEAD) bool {
		var err error
		content, err = aead.Open(nil, nonce, rest, []byte(purpose))
		return err == nil
	})
	return content, ok
}

// Current reports whether a text was sealed for the purpose with the key that texts are sealed with now. One that is
// stored and was not is to be sealed again, before its key is gone.
func (s *Sealer) Current(purpose, text string) bool {
	nonce, rest, ok := parts(text)
	if !ok {
		return false
	}
	_, err := s.sealing().Open(nil, nonce, rest, []byte(purpose))
	return err == nil
}

// parts returns the nonce of a text and the rest.
func parts(text string) (nonce, rest []byte, ok bool) {
	if strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return nil, nil, false
	}
	sealed, err := b64.DecodeString(text)
	if err != nil || len(sealed) < Overhead || sealed[0] != format {
		return nil, nil, false
	}
	return sealed[1 : 1+chacha20poly1305.NonceSizeX], sealed[1+chacha20poly1305.NonceSizeX:], true
}
