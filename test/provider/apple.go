package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"html"
	"io"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The key that is registered with Apple.
const (
	AppleTeam = "DEF123GHIJ"
	AppleKey  = "ABC123DEFG"
)

var appleKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // the source of randomness never fails
	return key
})

// ApplePrivateKey is the content of the file AuthKey_ABC123DEFG.p8.
func ApplePrivateKey() string {
	der, err := x509.MarshalPKCS8PrivateKey(appleKey())
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// AppleSecrets are the client secrets that Apple has received, in order.
func (s *Server) AppleSecrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.appleSecrets)
}

// appleSecret verifies the secret of a client, which is a JWT signed with its key.
func (s *Server) appleSecret(text, client string) error {
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		return err
	}
	if len(token.Headers) != 1 || token.Headers[0].KeyID != AppleKey {
		return errors.New("another key")
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		Issued   int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}
	if err := token.Claims(&appleKey().PublicKey, &claims); err != nil {
		return err
	}
	const longest = 15777000
	now := time.Now().Unix()
	if claims.Issuer != AppleTeam || claims.Subject != client || claims.Audience != s.URL+"/apple" {
		return errors.New("the claims are of another client")
	}
	if claims.Issued > now || claims.Expires <= now || claims.Expires > now+longest {
		return errors.New("the times are wrong")
	}
	return nil
}

var (
	formAction = regexp.MustCompile(`<form method="post" action="([^"]*)">`)
	formField  = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// Form returns the fields of the form of Apple's page, which browsers send to an action by POST.
func Form(t testing.TB, page io.Reader, action string) url.Values {
	t.Helper()
	text, err := io.ReadAll(page)
	if err != nil {
		t.Fatal(err)
	}
	if to := formAction.FindSubmatch(text); to == nil || html.UnescapeString(string(to[1])) != action {
		t.Fatalf("no form is sent to %s: %s", action, text)
	}
	fields := url.Values{}
	for _, field := range formField.FindAllSubmatch(text, -1) {
		fields.Add(html.UnescapeString(string(field[1])), html.UnescapeString(string(field[2])))
	}
	return fields
}
