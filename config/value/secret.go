package value

import (
	"encoding/base64"
	"errors"
	"strings"
)

// parseKey accepts 32 bytes in base64.
func parseKey(text string) (string, error) {
	const size = 32
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.Strict().DecodeString(plain)
	if err != nil || len(key) != size || strings.ContainsAny(text, "\r\n") {
		return "", errors.New("expected 32 random bytes in base64, as from: openssl rand -base64 32")
	}
	return string(key), nil
}

// minMetricsToken is the length of a token that can't be guessed.
const minMetricsToken = 16

func parseMetricsToken(text string) (string, error) {
	if text != "" && len(text) < minMetricsToken {
		return "", errors.New("expected at least 16 characters, or nothing for no token")
	}
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return "", errors.New("expected printable ASCII characters without spaces")
		}
	}
	return text, nil
}
