package provider

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"html/template"
	"maps"
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
	offline   bool   // a refresh token was asked for
}

const codeLife = 10 * time.Minute

func (s *Server) routeOAuth2(mux *http.ServeMux) {
	for name, d := range dialects {
		s.handle(mux, Authorize, "GET /"+name+"/authorize",
			func(w http.ResponseWriter, r *http.Request) { s.authorize(w, r, name) })
		s.handle(mux, Token, "POST /"+name+"/token",
			func(w http.ResponseWriter, r *http.Request) { s.token(w, r, name) })
		s.handle(mux, Profile, "GET /"+name+d.profilePath,
			func(w http.ResponseWriter, r *http.Request) { s.profile(w, r, name, d.profile) })
	}
	s.handle(mux, Emails, "GET /github/user/emails",
		func(w http.ResponseWriter, r *http.Request) { s.profile(w, r, "github", githubEmails) })
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
	d := dialects[name]
	switch {
	case q.Get("response_type") != "code" || q.Get("state") == "":
		answer.Set("error", "invalid_request")
	case d.noPKCE == q.Has("code_challenge"),
		!d.noPKCE && (q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43):
		answer.Set("error", "invalid_request")
	case d.formPost && q.Get("response_mode") != "form_post":
		http.Error(w, "response_mode must be form_post when name or email scope is requested.", http.StatusBadRequest)
		return
	case d.idToken != nil && (q.Get("nonce") == "" || !slices.Contains(strings.Fields(q.Get("scope")), "openid")):
		answer.Set("error", "invalid_scope")
	case s.deny:
		answer.Set("error", cmp.Or(d.denial, "access_denied"))
		answer.Set("error_description", "The user has denied your application access.")
	default:
		code := s.secret("code")
		answer.Set("code", code)
		s.grants[code] = &grant{
			dialect: name, client: q.Get("client_id"), callback: callback, challenge: q.Get("code_challenge"),
			nonce: q.Get("nonce"), scope: q.Get("scope"), user: s.user, expires: time.Now().Add(codeLife),
			offline: q.Get("access_type") == "offline" && q.Get("prompt") == "consent",
		}
		if name == "apple" && !s.named[s.user.id] {
			s.named[s.user.id] = true
			answer.Set("user", appleUser)
		}
	}
	if d.formPost {
		post(w, callback, answer)
		return
	}
	redirect(w, r, callback, answer)
}

// appleUser is what Apple sends at the first login of a user.
const appleUser = `{"name":{"firstName":"Ada","lastName":"Lovelace"},"email":"forged@example.com"}`

// post has the browser send a form to a callback.
func post(w http.ResponseWriter, callback string, answer url.Values) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = formPage.Execute(w, map[string]any{"Action": callback, "Fields": answer})
}

var formPage = template.Must(template.New("").Parse(
	`<form method="post" action="{{.Action}}">{{range $name, $values := .Fields}}{{range $values}}<input type="hidden" name="{{$name}}" value="{{.}}">{{end}}{{end}}</form><script>document.forms[0].submit()</script>`))

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
	client, ok := s.authenticateClient(r, name)
	if !ok {
		refuse(w, "invalid_client")
		return
	}
	d := dialects[name]
	if form.Get("grant_type") == "refresh_token" {
		s.refreshed(w, r, name, client)
		return
	}
	g := s.grants[form.Get("code")]
	switch {
	case form.Get("grant_type") != "authorization_code":
		refuse(w, "unsupported_grant_type")
	case d.noPKCE && form.Has("code_verifier"):
		refuse(w, map[string]string{"slack": "internal_error", "linkedin": "invalid_client"}[name])
	case g == nil || g.dialect != name || g.client != client || g.callback != form.Get("redirect_uri") ||
		time.Now().After(g.expires):
		refuse(w, "invalid_grant")
	case !d.noPKCE && !proves(form.Get("code_verifier"), g.challenge):
		refuse(w, "invalid_grant")
	case g.used:
		// A code that is used twice may be stolen, so its token is revoked.
		delete(s.tokens, g.token)
		refuse(w, "invalid_grant")
	default:
		g.used = true
		s.issue(w, r, g, d.refresh.issues(g))
	}
}

// issues reports whether a grant gets a refresh token.
func (f refreshing) issues(g *grant) bool {
	return f.always || f.offline && g.offline || f.scope != "" && slices.Contains(strings.Fields(g.scope), f.scope)
}

// issue replies with the tokens of a grant. The lock is held.
func (s *Server) issue(w http.ResponseWriter, r *http.Request, g *grant, refresh bool) {
	g.token = s.secret("access")
	s.tokens[g.token] = g
	answer := map[string]any{"access_token": g.token, "token_type": "Bearer", "expires_in": int(s.lifetime.Seconds()),
		"scope": g.scope}
	if refresh && !s.withheld {
		token := s.secret("refresh")
		s.refreshTokens[token] = g
		answer["refresh_token"] = token
	}
	if d := dialects[g.dialect]; d.idToken != nil {
		answer["id_token"] = s.idToken(g)
	}
	dialects[g.dialect].grant(w, r, answer)
}

// refreshed exchanges a refresh token for tokens. The lock is held.
func (s *Server) refreshed(w http.ResponseWriter, r *http.Request, name, client string) {
	d, token := dialects[name], r.PostForm.Get("refresh_token")
	refusal := d.refresh.refusal
	if refusal == "" {
		refusal = "invalid_grant"
	}
	if g := s.spent[token]; g != nil {
		s.reused++
		s.revoke(g)
	}
	g := s.refreshTokens[token]
	if g == nil || g.dialect != name || g.client != client {
		d.refuse(w, refusal)
		return
	}
	delete(s.tokens, g.token)
	if d.refresh.rotates {
		delete(s.refreshTokens, token)
		s.spent[token] = g
	}
	s.issue(w, r, g, d.refresh.rotates)
}

// revoke ends all tokens of a grant. The lock is held.
func (s *Server) revoke(g *grant) {
	maps.DeleteFunc(s.tokens, func(_ string, of *grant) bool { return of == g })
	maps.DeleteFunc(s.refreshTokens, func(_ string, of *grant) bool { return of == g })
}

// Revoke ends all tokens, as users do in the settings of their accounts.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	clear(s.refreshTokens)
}

// Withhold sets whether no refresh tokens are issued, as after the first consent.
func (s *Server) Withhold(withheld bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withheld = withheld
}

// Lifetime sets how long access tokens are valid, by default an hour: longer for a client whose clock a test
// has set forward. LinkedIn and Facebook have their own.
func (s *Server) Lifetime(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifetime = d
}

// Reused is how often a refresh token was used again after it was replaced.
func (s *Server) Reused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reused
}

// Accepts reports whether an access token is valid at a provider.
func (s *Server) Accepts(name, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.tokens[token]
	return g != nil && g.dialect == name
}

// authenticateClient is authenticate; Apple's secret is a signed text.
func (s *Server) authenticateClient(r *http.Request, name string) (client string, ok bool) {
	if name != "apple" {
		return authenticate(r, name)
	}
	client = r.PostForm.Get("client_id")
	secret := r.PostForm.Get("client_secret")
	s.secrets = append(s.secrets, secret)
	s.appleSecrets = append(s.appleSecrets, secret)
	_, _, basic := r.BasicAuth()
	return client, !basic && knownClient(name, client) && s.appleSecret(secret, client) == nil
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
