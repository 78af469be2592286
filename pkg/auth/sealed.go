package auth

import (
	"strings"

	"belfry/pkg/errs"
)

// Cipher encrypts secrets that are stored to be read again, with a key that is not stored beside them. *seal.Sealer is one.
type Cipher interface {
	// Seal encrypts content for a purpose.
	Seal(purpose string, content []byte) string
	// Open decrypts what Seal has encrypted for the same purpose.
	Open(purpose, text string) (content []byte, ok bool)
}

// sealedPrefix begins a secret that is encrypted; base32 has no colon.
const sealedPrefix = "sealed:"

// sealed returns a secret as it is stored: encrypted if the configuration has a key.
func (s *Service) sealed(purpose, secret string) string {
	if s.cipher == nil {
		return secret
	}
	return sealedPrefix + s.cipher.Seal(purpose, []byte(secret))
}

// opened returns a secret that sealed has returned.
func (s *Service) opened(purpose, stored string) (string, error) {
	text, encrypted := strings.CutPrefix(stored, sealedPrefix)
	if !encrypted {
		return stored, nil
	}
	if s.cipher != nil {
		if secret, ok := s.cipher.Open(purpose, text); ok {
			return string(secret), nil
		}
	}
	return "", errs.New(errs.Internal, "a secret of a user was encrypted with a key that is not in authentication.encryptionKey")
}
