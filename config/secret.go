package config

import (
	"log/slog"
	"strings"
)

// Secret is a string that formatting, logging and JSON show as "[secret]";
// string(s) is its value.
type Secret string

const redacted = "[secret]"

// String returns the redaction; an empty secret is shown as empty, which
// shows that none is set.
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

// secretLike reports whether messages must not quote the value of this key. Paths
// of credentials files count: people put the credentials themselves there by
// mistake. (A mapping's "key" is a property's name and not a secret.)
func secretLike(key string) bool {
	key = strings.ToLower(key)
	if strings.HasSuffix(key, "url") || strings.HasSuffix(key, "ttl") || key == "tokens" { // whether they are kept
		return false
	}
	for _, word := range [...]string{"password", "secret", "token", "nkey", "credential", "consumerkey", "privatekey", "encryptionkey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}
