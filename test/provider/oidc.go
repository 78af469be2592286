package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// signing are the keys of the OpenID Connect provider.
type signing struct {
	with jose.SignatureAlgorithm
	mark string // before the payload of each ID token
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

// Mark puts a text before the payload of each ID token: a byte order mark.
func (s *Server) Mark(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signing.mark = text
}

func (s *Server) routeOIDC(mux *http.ServeMux) {
	s.handle(mux, Discovery, "GET /oidc/.well-known/openid-configuration",
		func(w http.ResponseWriter, _ *http.Request) {
			issuer := s.Issuer()
			writeJSON(w, http.StatusOK, map[string]any{
				"issuer":                                issuer,
				"authorization_endpoint":                issuer + "/authorize",
				"token_endpoint":                        issuer + "/token",
				"userinfo_endpoint":                     issuer + "/userinfo",
				"jwks_uri":                              issuer + "/keys",
				"response_types_supported":              []string{"code"},
				"subject_types_supported":               []string{"public"},
				"id_token_signing_alg_values_supported": []string{"RS256", "ES256"},
				"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post",
					"none"},
				"code_challenge_methods_supported":               []string{"S256"},
				"scopes_supported":                               []string{"openid", "email", "profile"},
				"authorization_response_iss_parameter_supported": true,
			})
		})
	for name, d := range dialects {
		if d.idToken != nil {
			s.handle(mux, Keys, "GET /"+name+"/keys", s.serveKeys)
		}
	}
}

func (s *Server) serveKeys(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, key := range s.signing.keys {
		set.Keys = append(set.Keys, key.Public())
	}
	writeJSON(w, http.StatusOK, set)
}

// oidcClaims are those of an OpenID Connect provider.
func oidcClaims(*Server, *grant) map[string]any {
	return map[string]any{"email": "ada@example.com", "email_verified": true}
}

// appleClaims are those of Apple, which has no other profile. Whether an address is verified can be text.
func appleClaims(*Server, *grant) map[string]any {
	return map[string]any{
		"email": "ada@privaterelay.appleid.com", "email_verified": "true", "is_private_email": "true",
		"nonce_supported": true, "azp": nil,
	}
}

// Tenant is the tenant of Microsoft in which the users are.
const Tenant = "4f1c9e2a-7b3d-4c5e-8f60-1a2b3c4d5e6f"

// MicrosoftUser is the id, without that of the tenant, of the user with an id of digits.
func MicrosoftUser(id string) string {
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// microsoftClaims are those of the second version. The address is whatever the tenant says.
func microsoftClaims(s *Server, g *grant) map[string]any {
	claims := map[string]any{
		"iss": s.URL + "/microsoft/" + Tenant + "/v2.0", "tid": Tenant, "ver": "2.0", "name": "Ada Lovelace",
		"preferred_username": "ada@contoso.example",
		"email":              "ada@example.com", "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
		"aio": rand.Text(), "uti": rand.Text(), "rh": "0.AXo", "azp": nil, "at_hash": nil,
	}
	if slices.Contains(strings.Fields(g.scope), "profile") {
		claims["oid"] = MicrosoftUser(g.user.id)
	}
	return claims
}

// SlackTeam is the workspace of Slack in which the users are.
const SlackTeam = "T0R7GR"

// slackClaims are those of Slack, which always has a nonce.
func slackClaims(_ *Server, g *grant) map[string]any {
	return map[string]any{
		"https://slack.com/user_id": g.user.id, "https://slack.com/team_id": SlackTeam, "email": "ada@example.com",
		"email_verified":      true,
		"date_email_verified": 1622128723, "locale": "en-US", "name": "Ada", "given_name": "Ada",
		"family_name":                 "Lovelace",
		"https://slack.com/team_name": "kraneflannel", "https://slack.com/team_domain": "kraneflannel",
		"https://slack.com/user_image_24":      "https://secure.gravatar.com/ada",
		"https://slack.com/team_image_default": true, "azp": nil,
	}
}

// idToken signs the ID token of a grant. The lock is held.
func (s *Server) idToken(g *grant) string {
	half := sha256.Sum256([]byte(g.token))
	now := time.Now()
	claims := map[string]any{
		"iss": s.URL + "/" + g.dialect, "sub": g.user.id, "aud": g.client, "azp": g.client, "nonce": g.nonce,
		"iat": now.Unix(), "auth_time": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"at_hash": base64.RawURLEncoding.EncodeToString(half[:len(half)/2]),
	}
	maps.Copy(claims, dialects[g.dialect].idToken(s, g))
	if g.dialect != "oidc" {
		g.user.into(claims) // there is no other profile
	}
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	if s.change != nil {
		s.change(claims)
	}
	key := s.signing.keys[s.signing.with]
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: s.signing.with, Key: key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		panic(err) // a mistake of the test: there is no such algorithm
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err == nil && s.signing.mark != "" {
		text, err = marked(signer, s.signing.mark, text)
	}
	if err != nil {
		panic(err) // a mistake of the test: claims that are no JSON
	}
	s.secrets = append(s.secrets, text)
	return text
}

// marked signs the payload of a token again, with a text before it.
func marked(signer jose.Signer, mark, token string) (string, error) {
	_, payload, _ := strings.Cut(token, ".")
	payload, _, _ = strings.Cut(payload, ".")
	claims, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(append([]byte(mark), claims...))
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
