// Package provider runs OAuth providers for tests: the OAuth 2 servers of GitHub,
// Google, Facebook, Amazon, GitLab, Discord and LinkedIn, the OAuth 1 server of Twitter,
// the OpenID Connect providers Apple, Microsoft and Slack, and one that has a discovery
// document, on one loopback port.
//
// They are as strict as the real ones, and stricter where a client should not rely
// on leniency: redirect URIs match exactly, PKCE with S256 is required, a code is
// valid once, signatures, nonces and timestamps of OAuth 1 are verified. Nobody has
// to click: the browser is the user, and consents unless Deny was called. Profiles
// look as the providers document them.
//
// A server can simulate the failures of real ones: see Down, Slow, Answer, IDToken
// and the methods beside them.
package provider

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Server is all providers. Its methods are safe for concurrent use.
type Server struct {
	URL string // of the server, without a path

	mu        sync.Mutex
	signing   signing
	callbacks []string
	user      user
	deny      bool
	iss       *string // nil is the truth
	change    func(claims map[string]any)
	faults    map[Endpoint]fault
	held      []func() // what lets held requests go on
	seen      []Request
	grants    map[string]*grant     // by code
	tokens    map[string]*grant     // by access token
	temporary map[string]*temporary // OAuth 1, by request token
	access    map[string]string     // OAuth 1, secret by access token
	nonces    map[string]bool       // OAuth 1, of any time
	secrets   []string

	refreshTokens map[string]*grant // valid ones
	spent         map[string]*grant // by refresh tokens that were replaced
	reused        int               // how often one of these was used
	withheld      bool              // no refresh tokens are issued
	lifetime      time.Duration     // of access tokens
	named         map[string]bool   // users of Apple whose name was sent
	appleSecrets  []string          // received, in order
}

// user is the user of the browser.
type user struct {
	id     string
	fields map[string]any
}

// Request is a received request.
type Request struct {
	Endpoint Endpoint
	Path     string
	Query    url.Values
	Header   http.Header
}

// Start starts all providers, until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		signing:   signing{with: jose.RS256, keys: firstKeys()},
		user:      user{id: "583231"},
		faults:    map[Endpoint]fault{},
		grants:    map[string]*grant{},
		tokens:    map[string]*grant{},
		temporary: map[string]*temporary{},
		access:    map[string]string{},
		nonces:    map[string]bool{},

		refreshTokens: map[string]*grant{}, spent: map[string]*grant{}, named: map[string]bool{}, lifetime: time.Hour,

		secrets: []string{consumerSecret},
	}
	mux := http.NewServeMux()
	s.routeOAuth2(mux)
	s.routeOIDC(mux)
	s.routeOAuth1(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(s.Up)
	s.URL = server.URL
	return s
}

// App is an application registered with a provider.
type App struct {
	ClientID, ClientSecret        string
	AuthURL, TokenURL, ProfileURL string
	Issuer, KeysURL               string // of those with ID tokens
}

// Config is the application registered with a provider other than twitter.
func (s *Server) Config(name string) App {
	base := s.URL + "/" + name
	return App{Issuer: base, KeysURL: base + "/keys", ClientID: name + "-client", ClientSecret: secretOf(name),
		AuthURL: base + "/authorize", TokenURL: base + "/token", ProfileURL: base + dialects[name].profilePath}
}

// secretOf is a unique text, so that it can be found where it should not be.
func secretOf(name string) string { return name + "-s3cret/+ & more" }

// Register sets the redirect URIs of the applications.
func (s *Server) Register(callbacks ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callbacks = callbacks
}

// Absent as a field's value removes the field from the profile.
var Absent = new(struct{})

// User sets the user of the browser. The id is a number for GitHub and Twitter
// if it looks like one. fields alternates names and values that the profile has
// instead of the default ones.
func (s *Server) User(id string, fields ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = user{id: id, fields: map[string]any{}}
	for pair := range slices.Chunk(fields, 2) {
		s.user.fields[pair[0].(string)] = pair[1]
	}
}

// Deny sets whether the user refuses to consent.
func (s *Server) Deny(deny bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deny = deny
}

// AnswerAs sets the parameter iss of callbacks to a wrong issuer; "" removes
// it.
func (s *Server) AnswerAs(iss string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.iss = &iss
}

// IDToken changes the claims of ID tokens before they are signed.
func (s *Server) IDToken(change func(claims map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = change
}

// ExpireCodes expires all codes.
func (s *Server) ExpireCodes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		g.expires = time.Time{}
	}
}

// Secrets are all codes, tokens, secrets, verifiers and proofs of the server.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	secrets := slices.Clone(s.secrets)
	for name := range dialects {
		secrets = append(secrets, secretOf(name))
	}
	return secrets
}

// Requests are the requests to an endpoint, in order.
func (s *Server) Requests(at Endpoint) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.seen), func(r Request) bool { return at != Any && r.Endpoint != at })
}

// handle routes requests to h, unless a fault applies.
func (s *Server) handle(mux *http.ServeMux, at Endpoint, pattern string, h http.HandlerFunc) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, Request{Endpoint: at, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone()})
		s.secrets = append(s.secrets, r.URL.Query()["appsecret_proof"]...)
		f := s.faults[at]
		if f == nil {
			f = s.faults[Any]
		}
		s.mu.Unlock()
		if f == nil || f(w, r) {
			h(w, r)
		}
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// redirect redirects the browser to a callback with added query parameters.
func redirect(w http.ResponseWriter, r *http.Request, callback string, query url.Values) {
	separator := "?"
	if strings.Contains(callback, "?") {
		separator = "&"
	}
	http.Redirect(w, r, callback+separator+query.Encode(), http.StatusFound)
}
