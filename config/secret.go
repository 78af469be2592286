package config

import (
	"log/slog"
	"strings"
)

// Secret is a text that formatting, logging and JSON show as "[secret]";
// string(s) is the text itself.
type Secret string

const redacted = "[secret]"

// String returns the redaction; an empty secret is shown as empty, for it is
// useful to know that none is set.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString redacts for %#v.
func (s Secret) GoString() string { return `config.Secret("` + s.String() + `")` }

// MarshalText redacts for encoders such as JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue redacts for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// secretLike reports whether a value under this key is not to be quoted in a
// message. Files of credentials count, for it is their content that is put there
// by mistake. (A mapping's "key" is a property's name and no secret.)
func secretLike(key string) bool {
	key = strings.ToLower(key)
	if strings.HasSuffix(key, "url") || strings.HasSuffix(key, "ttl") {
		return false
	}
	for _, word := range [...]string{"password", "secret", "token", "nkey", "credential", "consumerkey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}
