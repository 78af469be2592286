package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestWrongSubstitutions(t *testing.T) {
	const syntax = "expected ${NAME}, ${NAME:-default} or ${file:/absolute/path}; $${ stands for a literal ${"
	checkInvalid(t, []invalidCase{
		{"an unset variable", "data: x\nlisten: ${HOST}:80\n", []string{
			"2:1: listen: environment variable HOST is not set; set it, or write a default: ${HOST:-default}"}},
		{"other syntax", "data: ${}\nlisten: ${1A}\nbaseURL: ${A-b}\nlog: {format: \"${A\"}\n", []string{
			"1:1: data: " + syntax, "2:1: listen: " + syntax, "3:1: baseURL: " + syntax, "4:7: log.format: " + syntax}},
		{"not UTF-8", "data: ${LATIN}\n", []string{"1:1: data: environment variable LATIN is not valid UTF-8"}},
		{"keys are not substituted", "${PORT}: 1\n", []string{`1:1: "${PORT}": unknown key; ` + knownAtTop}},
	})
}

func TestEnvironmentValuesHaveTheTypeOfTheirKey(t *testing.T) {
	c := mustParse(t, `
mailers: {m: {type: smtp, host: h, port: "${PORT}"}}
stores: {A: {expose: {list: "${NONE:-true}"}, private: "${NONE:-a, b}"}}
authentication: {providers: {github: {clientID: "${NONE:-}", clientSecret: "${NONE:-}"}}}
`)
	equal(t, "port", c.Mailers["m"].SMTP.Port, int64(8099))
	equal(t, "list", c.Stores["A"].Expose.List, true)
	equal(t, "private", c.Stores["A"].Private, []string{"a", "b"})
	equal(t, "clientID", c.Authentication.OAuth2["github"].ClientID, "")
}

// Each key gets an invalid value from the environment, or directly if the key is
// secret-like. The problem must not contain the value.
func TestProblemsNeverContainSecrets(t *testing.T) {
	const secret = "Swordfish!/"
	env := func(string) (string, bool) { return secret, true }
	texts := []string{
		"authentication: {providers: {github: {clientSecret: [" + secret + "]}}}",
		"bus: {url: 'nats://u:" + secret + "@h', user: u, password: " + secret + "}",
		"bus: {url: 'nats://a', nkey: " + secret + "}",
		"bus: {url: 'nats://a', credentials: " + secret + "}",
		"bus: {url: 'nats://a', tls: {cert: testdata/full.yaml, key: " + secret + "}}",
		"bus: {password: *" + secret + "}",
		"bus: {password: !" + secret + " x}",
		"backends: {m: {type: mongodb, url: 'mongo://u:" + secret + "@h'}}",
	}
	for _, text := range []string{
		"X", "listen: X", "baseURL: X", "data: [X]", "tombstones: X", "maxObjectSize: X", "log: {level: X}",
		"bus: {url: X}",
		"backends: {b: {type: X}}", "stores: {A: {backend: X}}", "stores: {A: {schema: X}}", "stores: {A: {policy: X}}",
		"stores: {A: {expose: {url: X}}}", "stores: {A: {expose: {list: X}}}", "stores: {A: {private: [X]}}",
		"stores: {A: {indexes: [X]}}", "stores: {A: {map: {A: {key: X, target: X, fields: X, limit: X}}}}",
		"stores: {A: {intercept: {save: [{name: X, timeout: X, onError: X}]}}}",
		"authentication: {userStore: X, successRedirect: X, providers: {email: {mailer: X, from: X}}}",
		"mailers: {m: {type: smtp, host: X, port: X, tls: X}}", "binaries: {b: {type: X}}",
		"binaries: {b: {map: {Users: [X]}}}",
	} {
		texts = append(texts, strings.ReplaceAll(text, "X", "'${SECRET}'"))
	}
	for _, text := range texts {
		_, err := Parse("belfry.yaml", []byte(text), env)
		if err == nil {
			t.Errorf("accepted: %s", text)
		} else if strings.Contains(err.Error(), strings.TrimSuffix(secret, "!/")) {
			t.Errorf("%s:\n%v", text, err)
		}
	}
}

// A valid value from the environment is redacted too when it contradicts another.
func TestChecksNeverShowValuesOfTheEnvironment(t *testing.T) {
	env := func(string) (string, bool) { return "swordfish", true }
	for _, text := range []string{
		"stores: {A: {backend: X}}",
		"stores: {A: {private: swordfish, indexes: [X], map: {A: {key: X, target: X, fields: [X]}}}}",
		"stores: {A: {private: [X, X]}}",
		"stores: {A: {expose: {url: /X}}, B: {expose: {url: /X}}}",
		"stores: {A: {map: {C: {key: a, target: X}}}, B: {map: {C: {key: a, target: X}}}, C: {}}",
		"authentication: {providers: {email: {mailer: X}}}",
		"stores: {A: {private: swordfish}}\nbinaries: {b: {map: {A: [X]}}}",
	} {
		_, err := Parse("belfry.yaml", []byte(strings.ReplaceAll(text, "X", "${SECRET}")), env)
		if err == nil {
			t.Errorf("accepted: %s", text)
		} else if strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s:\n%v", text, err)
		}
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	c := mustParse(t, "bus: {url: 'nats://a', user: u, password: hunter2}\n")
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("started", "password", c.Bus.Password, "bus", c.Bus)
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s", c.Bus, c.Bus, c.Bus, c.Bus.Password), string(encoded),
		logged.String()} {
		if strings.Contains(shown, "hunter2") || !strings.Contains(shown, "[secret]") {
			t.Errorf("shown as %s", shown)
		}
	}
	equal(t, "the text itself", string(c.Bus.Password), "hunter2")
	equal(t, "no secret", Secret("").String(), "")
}
