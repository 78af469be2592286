package provider

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// grant is what a user consented to.
type grant struct {
	dialect   string
	client    string
	callback  string
	challenge string
	nonce     string
	scope     string
	user      user
	expires   time.Time
	used      bool
	token     string // "" until the code was traded
}

const codeLife = 10 * time.Minute

func (s *Server) routeOAuth2(mux *http.ServeMux) {
	for name, d := range dialects {
		s.handle(mux, Authorize, "GET /"+name+"/authorize", func(w http.ResponseWriter, r *http.Request) { s.authorize(w, r, name) })
		s.handle(mux, Token, "POST /"+name+"/token", func(w http.ResponseWriter, r *http.Request) { s.token(w, r, name) })
		s.handle(mux, Profile, "GET /"+name+d.profilePath, func(w http.ResponseWriter, r *http.Request) { s.profile(w, r, name, d.profile) })
	}
	s.handle(mux, Emails, "GET /github/user/emails", func(w http.ResponseWriter, r *http.Request) { s.profile(w, r, "github", githubEmails) })
}

// authorize is the authorization endpoint. It redirects only to a registered
// callback.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	callback := q.Get("redirect_uri")
	if !knownClient(name, q.Get("client_id")) || !slices.Contains(s.callbacks, callback) {
		http.Error(w, "unknown application or redirect_uri", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {q.Get("state")}}
	if iss := s.URL + "/" + name; dialects[name].namesIssuer || s.iss != nil {
		if s.iss != nil {
			iss = *s.iss
		}
		if iss != "" {
			answer.Set("iss", iss)
		}
	}
	switch {
	case q.Get("response_type") != "code" || q.Get("state") == "" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		answer.Set("error", "invalid_request")
	case name == "oidc" && (q.Get("nonce") == "" || !slices.Contains(strings.Fields(q.Get("scope")), "openid")):
		answer.Set("error", "invalid_scope")
	case s.deny:
		answer.Set("error", "access_denied")
		answer.Set("error_description", "The user has denied your application access.")
	default:
		code := s.secret("code")
		answer.Set("code", code)
		s.grants[code] = &grant{
			dialect: name, client: q.Get("client_id"), callback: callback, challenge: q.Get("code_challenge"),
			nonce: q.Get("nonce"), scope: q.Get("scope"), user: s.user, expires: time.Now().Add(codeLife),
		}
	}
	redirect(w, r, callback, answer)
}

// publicClient of oidc has no secret.
const publicClient = "oidc-public"

func knownClient(name, id string) bool {
	return id == name+"-client" || name == "oidc" && id == publicClient
}

// secret makes a random secret. The lock is held.
func (s *Server) secret(kind string) string {
	text := kind + "-" + rand.Text()
	s.secrets = append(s.secrets, text)
	return text
}

// token exchanges a code, once, for the tokens of a grant.
func (s *Server) token(w http.ResponseWriter, r *http.Request, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := dialects[name].refuse
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request")
		return
	}
	form := r.PostForm
	s.secrets = append(s.secrets, form.Get("code_verifier"))
	client, ok := authenticate(r, name)
	if !ok {
		refuse(w, "invalid_client")
		return
	}
	g := s.grants[form.Get("code")]
	switch {
	case form.Get("grant_type") != "authorization_code":
		refuse(w, "unsupported_grant_type")
	case g == nil || g.dialect != name || g.client != client || g.callback != form.Get("redirect_uri") || time.Now().After(g.expires):
		refuse(w, "invalid_grant")
	case !proves(form.Get("code_verifier"), g.challenge):
		refuse(w, "invalid_grant")
	case g.used:
		// A code that is used twice may be stolen, so its token is revoked.
		delete(s.tokens, g.token)
		refuse(w, "invalid_grant")
	default:
		g.used = true
		g.token = s.secret("access")
		s.tokens[g.token] = g
		answer := map[string]any{"access_token": g.token, "token_type": "Bearer", "expires_in": 3600, "scope": g.scope}
		if name == "oidc" {
			answer["id_token"] = s.idToken(g)
		}
		dialects[name].grant(w, r, answer)
	}
}

// authenticate authenticates a client by Basic credentials or by parameters.
func authenticate(r *http.Request, name string) (client string, ok bool) {
	client, secret := r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	if user, password, basic := r.BasicAuth(); basic {
		if secret != "" {
			return "", false // RFC 6749, 2.3: one method a request
		}
		var errUser, errPassword error
		client, errUser = url.QueryUnescape(user)
		secret, errPassword = url.QueryUnescape(password)
		if errUser != nil || errPassword != nil {
			return "", false
		}
	}
	want := secretOf(name)
	if client == publicClient {
		want = ""
	}
	return client, knownClient(name, client) && subtle.ConstantTimeCompare([]byte(secret), []byte(want)) == 1
}

func proves(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return len(verifier) >= 43 && base64.RawURLEncoding.EncodeToString(sum[:]) == challenge
}

// profile is the profile endpoint.
func (s *Server) profile(w http.ResponseWriter, r *http.Request, name string, shape shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	g := s.tokens[token]
	if !ok || g == nil || g.dialect != name {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials", "status": "401"})
		return
	}
	status, profile := shape(asked{g.user.id, g.scope, token, r})
	if document, ok := profile.(map[string]any); ok {
		g.user.into(document)
	}
	writeJSON(w, status, profile)
}

// into sets the user's own fields in a profile.
func (u user) into(profile map[string]any) {
	for name, value := range u.fields {
		if value == any(Absent) {
			delete(profile, name)
		} else {
			profile[name] = value
		}
	}
}
