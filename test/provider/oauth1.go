package provider

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	consumerKey    = "twitter-consumer"
	consumerSecret = "twitter-consumer-s3cret/+ & more"
)

// OAuth1App is an application registered with Twitter.
type OAuth1App struct {
	ConsumerKey, ConsumerSecret                               string
	RequestTokenURL, AuthorizeURL, AccessTokenURL, ProfileURL string
}

// Twitter is the application registered with Twitter.
func (s *Server) Twitter() OAuth1App {
	base := s.URL + "/twitter"
	return OAuth1App{
		ConsumerKey: consumerKey, ConsumerSecret: consumerSecret,
		RequestTokenURL: base + "/oauth/request_token", AuthorizeURL: base + "/oauth/authenticate",
		AccessTokenURL: base + "/oauth/access_token",
		ProfileURL:     base + "/1.1/account/verify_credentials.json?include_email=true&skip_status=true",
	}
}

// temporary are the temporary credentials of a login in progress.
type temporary struct {
	secret   string
	callback string
	verifier string // "" until the user consents
	user     user
}

func (s *Server) routeOAuth1(mux *http.ServeMux) {
	s.handle(mux, RequestToken, "POST /twitter/oauth/request_token", s.requestToken)
	s.handle(mux, Authorize, "GET /twitter/oauth/authenticate", s.authenticate)
	s.handle(mux, Token, "POST /twitter/oauth/access_token", s.accessToken)
	s.handle(mux, Profile, "GET /twitter/1.1/account/verify_credentials.json", s.verifyCredentials)
}

func (s *Server) requestToken(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	params, ok := s.signed(r, "")
	switch {
	case !ok:
		unauthenticated(w)
	case !slices.Contains(s.callbacks, params["oauth_callback"]):
		writeJSON(w, http.StatusForbidden, twitterError(415, "Callback URL not approved for this client application."))
	default:
		token, t := s.secret("request"), &temporary{secret: s.secret("secret"), callback: params["oauth_callback"]}
		s.temporary[token] = t
		writeForm(w,
			url.Values{"oauth_token": {token}, "oauth_token_secret": {t.secret}, "oauth_callback_confirmed": {"true"}})
	}
}

// authenticate is the authorization endpoint.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := r.URL.Query().Get("oauth_token")
	t := s.temporary[token]
	switch {
	case t == nil || t.verifier != "":
		http.Error(w, "unknown or used request token", http.StatusForbidden)
	case s.deny:
		delete(s.temporary, token)
		redirect(w, r, t.callback, url.Values{"denied": {token}})
	default:
		t.verifier, t.user = s.secret("verifier"), s.user
		redirect(w, r, t.callback, url.Values{"oauth_token": {token}, "oauth_verifier": {t.verifier}})
	}
}

func (s *Server) accessToken(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := authorization(r)["oauth_token"]
	t := s.temporary[token]
	if t == nil {
		unauthenticated(w)
		return
	}
	params, ok := s.signed(r, t.secret)
	if !ok || t.verifier == "" || params["oauth_verifier"] != t.verifier {
		unauthenticated(w)
		return
	}
	delete(s.temporary, token)
	access := s.secret("access")
	s.access[access] = s.secret("secret")
	s.tokens[access] = &grant{dialect: "twitter", user: t.user, token: access}
	writeForm(w, url.Values{"oauth_token": {access}, "oauth_token_secret": {s.access[access]}, "user_id": {t.user.id},
		"screen_name": {"ada"}})
}

func (s *Server) verifyCredentials(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := authorization(r)["oauth_token"]
	g := s.tokens[token]
	if g == nil || g.dialect != "twitter" {
		unauthenticated(w)
		return
	}
	if _, ok := s.signed(r, s.access[token]); !ok {
		unauthenticated(w)
		return
	}
	status, profile := twitter(asked{id: g.user.id, request: r})
	g.user.into(profile.(map[string]any))
	writeJSON(w, status, profile)
}

func unauthenticated(w http.ResponseWriter) {
	writeJSON(w, http.StatusUnauthorized, twitterError(32, "Could not authenticate you."))
}

func twitterError(code int, message string) any {
	return map[string]any{"errors": []any{map[string]any{"code": code, "message": message}}}
}

func writeForm(w http.ResponseWriter, form url.Values) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8") // as Twitter has it
	_, _ = w.Write([]byte(form.Encode()))
}

// signed verifies a request by RFC 5849, and returns the parameters of its
// Authorization header. The lock is held.
func (s *Server) signed(r *http.Request, tokenSecret string) (params map[string]string, ok bool) {
	const skew = 5 * time.Minute
	params = authorization(r)
	seconds, err := strconv.ParseInt(params["oauth_timestamp"], 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > skew {
		return nil, false
	}
	nonce := params["oauth_timestamp"] + " " + params["oauth_nonce"]
	if params["oauth_nonce"] == "" || s.nonces[nonce] {
		return nil, false
	}
	if params["oauth_consumer_key"] != consumerKey || params["oauth_signature_method"] != "HMAC-SHA1" ||
		params["oauth_version"] != "1.0" {
		return nil, false
	}
	mac := hmac.New(sha1.New, []byte(percent(consumerSecret)+"&"+percent(tokenSecret)))
	mac.Write([]byte(baseString(r, params)))
	given, err := base64.StdEncoding.DecodeString(params["oauth_signature"])
	if err != nil || !hmac.Equal(given, mac.Sum(nil)) {
		return nil, false
	}
	s.nonces[nonce] = true
	return params, true
}

// authorization parses the header's parameters (RFC 5849, 3.5.1).
func authorization(r *http.Request) map[string]string {
	params := map[string]string{}
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "OAuth ")
	if !ok {
		return params
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, quoted, _ := strings.Cut(strings.TrimSpace(pair), "=")
		value, err := url.PathUnescape(strings.Trim(quoted, `"`))
		if err == nil && name != "realm" {
			params[name] = value
		}
	}
	return params
}

// baseString is what is signed (RFC 5849, 3.4.1). No request has a body.
func baseString(r *http.Request, params map[string]string) string {
	all := r.URL.Query()
	for name, value := range params {
		if name != "oauth_signature" {
			all.Add(name, value)
		}
	}
	// Encode sorts by names that are not encoded yet; all names here are of
	// characters that stay as they are.
	for _, values := range all {
		slices.Sort(values)
	}
	normal := strings.ReplaceAll(all.Encode(), "+", "%20")
	return r.Method + "&" + percent("http://"+r.Host+r.URL.Path) + "&" + percent(normal)
}

// percent encodes all but the unreserved characters of RFC 3986.
func percent(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
