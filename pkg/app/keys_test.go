package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/test/manual/keys"
)

// People copy the examples of docs/reference/configuration.md: what `belfry config check` does accepts each.
func TestEveryExampleOfAKeyIsValid(t *testing.T) {
	documented, err := keys.Read("../../test/manual/keys/keys.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := documented.Examples()
	if err != nil {
		t.Fatal(err)
	}
	if without := len(documented.Keys()) - len(examples); without > 0 {
		t.Errorf("%d keys have no example", without)
	}
	for _, e := range loadExamples(t, examples) {
		err := e.err
		if err == nil {
			err = plan.Check(e.config)
		}
		if err != nil {
			t.Errorf("the example of %s: %v\n%s", e.path, err, e.text)
		}
	}
}

// loaded is an example of a key: a configuration, or why it is none.
type loaded struct {
	path, text string
	config     *config.Config
	err        error
}

// loadExamples reads the configurations of examples, beside the files that they name.
func loadExamples(t *testing.T, examples []keys.Example) (all []loaded) {
	t.Helper()
	folder := exampleFolder(t)
	environment := func(name string) (string, bool) {
		value, set := map[string]string{
			"BUS_PASSWORD": "secret", "BUS_TOKEN": "secret", "MONGODB_URL": "mongodb://127.0.0.1/?replicaSet=rs0",
			"GITHUB_SECRET": "secret", "TWITTER_SECRET": "secret",
			"APPLE_KEY": fileText(t, filepath.Join(folder, "AuthKey.p8")),
		}[name]
		return value, set
	}
	for _, example := range examples {
		text := strings.ReplaceAll(string(example.Text), "${file:/run/secrets/", "${file:"+folder+"/secrets/")
		c, err := config.Parse(filepath.Join(folder, "config", "belfry.yaml"), []byte(text), environment)
		all = append(all, loaded{example.Path, text, c, err})
	}
	return all
}

// exampleFolder makes the files that the examples name.
func exampleFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"recipes.example.com"},
		NotAfter: time.Now().Add(90 * 24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificatePEM := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	for name, text := range map[string]string{
		"config/tls/cert.pem": certificatePEM, "config/tls/company-ca.pem": certificatePEM,
		"config/tls/key.pem": keyPEM, "config/AuthKey.p8": keyPEM, "AuthKey.p8": keyPEM,
		"config/nats.creds": "credentials", "config/nats.nk": "seed",
		"config/nats.conf": "accounts: {APP: {jetstream: enabled, users: [{user: belfry, password: " +
			"secret}]}}\n",
		"config/schemas/recipe.json": `{"type": "object", "properties": {"title": {"type": "string", "default": "Untitled"}}, "additionalProperties": true}`,
		"config/GeoLite2-City.mmdb":  fileText(t, cityFile),
		"config/pages/login.html":    fileText(t, "../api/pages/templates/login.html"),
		"config/languages/fr.yaml":   "login: {title: Connexion}",
		"config/logo.svg":            "<svg xmlns='http://www.w3.org/2000/svg'/>",
		"web/dist/index.html":        "<!doctype html>", "web/dist/assets/app.js": "",
		"secrets/metrics": "0123456789abcdef", "secrets/smtp": "secret",
		"secrets/encryption": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
	} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
