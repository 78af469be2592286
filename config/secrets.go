package config

import "reflect"

// Secrets returns the values of all secrets, for what must not print them: passwords, tokens, keys, and URLs that have a
// password.
func (c *Config) Secrets() []string {
	var all []string
	collectSecrets(reflect.ValueOf(c).Elem(), &all)
	return all
}

var secretType = reflect.TypeFor[Secret]()

// collectSecrets walks through the exported fields.
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
