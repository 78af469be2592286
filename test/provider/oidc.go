package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// signing are the keys of the OpenID Connect provider.
type signing struct {
	with jose.SignatureAlgorithm
	keys map[jose.SignatureAlgorithm]jose.JSONWebKey
}

// Issuer is the OpenID Connect provider of the application Config("oidc").
func (s *Server) Issuer() string { return s.URL + "/oidc" }

// PublicClient is an application of the OpenID Connect provider that has no
// secret.
func (s *Server) PublicClient() string { return publicClient }

// Rotate replaces the keys that ID tokens are signed with.
func (s *Server) Rotate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signing.keys = newKeys()
}

// firstKeys are the initial keys of every server: generating RSA keys takes
// long.
var firstKeys = sync.OnceValue(newKeys)

func newKeys() map[jose.SignatureAlgorithm]jose.JSONWebKey {
	// The source of randomness never fails.
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return map[jose.SignatureAlgorithm]jose.JSONWebKey{
		jose.RS256: {Key: rsaKey, KeyID: rand.Text(), Algorithm: string(jose.RS256), Use: "sig"},
		jose.ES256: {Key: ecKey, KeyID: rand.Text(), Algorithm: string(jose.ES256), Use: "sig"},
	}
}

// Sign sets the algorithm: RS256, the default, or ES256.
func (s *Server) Sign(alg string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signing.with = jose.SignatureAlgorithm(alg)
}

func (s *Server) routeOIDC(mux *http.ServeMux) {
	s.handle(mux, Discovery, "GET /oidc/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		issuer := s.Issuer()
		writeJSON(w, http.StatusOK, map[string]any{
			"issuer":                                         issuer,
			"authorization_endpoint":                         issuer + "/authorize",
			"token_endpoint":                                 issuer + "/token",
			"userinfo_endpoint":                              issuer + "/userinfo",
			"jwks_uri":                                       issuer + "/keys",
			"response_types_supported":                       []string{"code"},
			"subject_types_supported":                        []string{"public"},
			"id_token_signing_alg_values_supported":          []string{"RS256", "ES256"},
			"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post", "none"},
			"code_challenge_methods_supported":               []string{"S256"},
			"scopes_supported":                               []string{"openid", "email", "profile"},
			"authorization_response_iss_parameter_supported": true,
		})
	})
	s.handle(mux, Keys, "GET /oidc/keys", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var set jose.JSONWebKeySet
		for _, key := range s.signing.keys {
			set.Keys = append(set.Keys, key.Public())
		}
		writeJSON(w, http.StatusOK, set)
	})
}

// idToken signs the ID token of a grant. The lock is held.
func (s *Server) idToken(g *grant) string {
	half := sha256.Sum256([]byte(g.token))
	now := time.Now()
	claims := map[string]any{
		"iss": s.Issuer(), "sub": g.user.id, "aud": g.client, "azp": g.client, "nonce": g.nonce,
		"iat": now.Unix(), "auth_time": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"at_hash": base64.RawURLEncoding.EncodeToString(half[:len(half)/2]),
		"email":   "ada@example.com", "email_verified": true,
	}
	if s.change != nil {
		s.change(claims)
	}
	key := s.signing.keys[s.signing.with]
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: s.signing.with, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		panic(err) // a mistake of the test: there is no such algorithm
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		panic(err) // a mistake of the test: claims that are no JSON
	}
	s.secrets = append(s.secrets, text)
	return text
}
