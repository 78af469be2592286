package config

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// secrets adds all values of type Secret in a value.
func secrets(v reflect.Value, found map[string]bool) {
	if v.Type() == reflect.TypeFor[Secret]() {
		if v.String() != "" {
			found[v.String()] = true
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			secrets(v.Elem(), found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				secrets(v.Field(i), found)
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			secrets(each.Value(), found)
		}
	case reflect.Slice:
		for i := range v.Len() {
			secrets(v.Index(i), found)
		}
	}
}

func TestTheConfigurationIsShownWithoutSecrets(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fromEnvironment := strings.Replace(string(data), "consumerSecret: s,", "consumerSecret: twitter-hunter2,", 1) +
		"\n# the former password was hunter2\n"
	for _, text := range []string{fromEnvironment,
		strings.ReplaceAll(fromEnvironment, "${BUS_PASSWORD}", "literal-hunter2")} {
		c, err := Parse("testdata/full.yaml", []byte(text), environment)
		if err != nil {
			t.Fatal(err)
		}
		shown := c.Shown()
		found := map[string]bool{}
		secrets(reflect.ValueOf(*c), found)
		if len(found) < 4 {
			t.Errorf("the file has the secrets %v only", found)
		}
		found["hunter2"], found["2525}"] = true, true
		for secret := range found {
			if strings.Contains(shown, secret) {
				t.Errorf("%q is shown:\n%s", secret, shown)
			}
		}
		for _, plain := range []string{"baseURL: https://kitchen.example.org/api/", "host: smtp.example.org",
			"user: kitchen", "clientID: gh", `password: "[secret]"`, `clientSecret: "[secret]"`, "tokenTTL: 1h"} {
			if !strings.Contains(shown, plain) {
				t.Errorf("%q is not shown:\n%s", plain, shown)
			}
		}
		var again map[string]any
		if err := yaml.Unmarshal([]byte(shown), &again); err != nil {
			t.Error(err)
		}
	}
	// A user of belfry may call anything a secret; URLs may have passwords whatever their key.
	c := mustParse(t, "stores: {Tokens2: {expose: {}}, Links: {policy: {get: \"object.url == "+
		"'https://ada:hunter2@example.org'\"}}} # the former one\nbackends: {default: {type: mongodb, url: "+
		"\"mongodb://ada:hunter2@n1/x\", database: x}}\n")
	if shown := c.Shown(); strings.Contains(shown, "hunter2") || strings.Contains(shown, "former") ||
		!strings.Contains(shown, "Tokens2: {expose: {}}") || !strings.Contains(shown, `get: "[secret]"`) {
		t.Error(shown)
	}
	if shown := mustParse(t, "").Shown(); shown != "" {
		t.Errorf("of an empty file: %q", shown)
	}
}
