package account

import (
	"strings"

	"belfry/pkg/errs"
)

// sealedPrefix begins a secret that is encrypted; base32 has no colon.
const sealedPrefix = "sealed:"

// sealed returns a secret as it is stored: encrypted if the configuration has a key.
func (s *Service) sealed(purpose, secret string) string {
	if s.sealer == nil {
		return secret
	}
	return sealedPrefix + s.sealer.Seal(purpose, []byte(secret))
}

// opened returns a secret that sealed has returned.
func (s *Service) opened(purpose, stored string) (string, error) {
	text, encrypted := strings.CutPrefix(stored, sealedPrefix)
	if !encrypted {
		return stored, nil
	}
	if s.sealer != nil {
		if secret, ok := s.sealer.Open(purpose, text); ok {
			return string(secret), nil
		}
	}
	return "", errs.New(errs.Internal, "a secret of a user was encrypted with a key that is not in authentication.encryptionKey")
}
