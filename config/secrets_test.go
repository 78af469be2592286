package config_test

import (
	"slices"
	"testing"

	"belfry/config"
)

// Whatever prints what servers reply has to know all secrets, wherever they are in the configuration.
func TestSecretsHasAllSecrets(t *testing.T) {
	text := `
bus: {url: "nats://n3:4222", user: belfry, password: of-bus}
metrics: {token: of-the-metrics-which-is-long-enough}
backends: {default: {type: mongodb, url: "mongodb://u:of-mongo@m/", database: b}}
mailers: {m: {type: smtp, host: mail.example, user: u, password: of-mail}}
authentication: {providers: {github: {clientID: id, clientSecret: of-github}}}
`
	c, err := config.Parse("belfry.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	got := c.Secrets()
	for _, want := range []string{
		"of-bus", "of-the-metrics-which-is-long-enough", "mongodb://u:of-mongo@m/", "of-mail", "of-github",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	for _, not := range []string{"id", "u", "belfry", "nats://n3:4222", "mail.example"} {
		if slices.Contains(got, not) {
			t.Errorf("%q is taken for a secret", not)
		}
	}
}
