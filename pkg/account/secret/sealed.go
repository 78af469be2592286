package secret

import (
	"strings"

	"belfry/internal/seal"
	"belfry/pkg/errs"
)

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
	return "", errs.New(errs.Internal, "a secret of a user was encrypted with a key that is not in authentication.encryptionKey")
}
