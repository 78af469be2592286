package decode

import (
	"log/slog"
	"reflect"
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

// SecretLike reports whether messages must not quote the value of this key. Paths
// of credentials files count: people put the credentials themselves there by
// mistake. (A mapping's "key" is a property's name and not a secret.)
func SecretLike(key string) bool {
	key = strings.ToLower(key)
	if strings.HasSuffix(key, "url") || strings.HasSuffix(key, "ttl") || key == "tokens" { // whether they are kept
		return false
	}
	for _, word := range [...]string{"password", "secret", "token", "nkey", "credential", "consumerkey", "privatekey",
		"encryptionkey"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

var secretType = reflect.TypeFor[Secret]()

// Secrets returns the values of all secrets in a struct, by its exported fields.
func Secrets(of any) []string {
	var all []string
	collectSecrets(reflect.ValueOf(of), &all)
	return all
}

func collectSecrets(v reflect.Value, all *[]string) {
	if v.Type() == secretType {
		if s := v.String(); s != "" {
			*all = append(*all, s)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collectSecrets(v.Elem(), all)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collectSecrets(v.Field(i), all)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			collectSecrets(v.Index(i), all)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			collectSecrets(v.MapIndex(key), all)
		}
	}
}
