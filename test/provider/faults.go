package provider

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Endpoint is one of the things that are asked of a provider.
type Endpoint string

// The endpoints. Any is all of them.
const (
	Any          Endpoint = ""
	Discovery    Endpoint = "discovery"
	Keys         Endpoint = "keys"
	Authorize    Endpoint = "authorize"
	RequestToken Endpoint = "request token" // of OAuth 1
	Token        Endpoint = "token"
	Profile      Endpoint = "profile"
	Emails       Endpoint = "emails" // of GitHub
)

// fault comes before an endpoint's handler, and says whether that still
// follows.
type fault func(w http.ResponseWriter, r *http.Request) bool

func (s *Server) put(at Endpoint, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[at] = f
}

// Down cuts connections to an endpoint without an answer.
func (s *Server) Down(at Endpoint) {
	s.put(at, func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
}

// Slow holds requests to an endpoint until release or Up is called, or the
// client gives up. Each request that is held is told to waiting.
func (s *Server) Slow(at Endpoint) (waiting <-chan struct{}, release func()) {
	held, released := make(chan struct{}, 100), make(chan struct{})
	s.put(at, func(_ http.ResponseWriter, r *http.Request) bool {
		// Only behind the body does the server see that a client goes away.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		held <- struct{}{}
		select {
		case <-released:
			return true
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	})
	release = sync.OnceFunc(func() { close(released) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, release)
	return held, release
}

// Answer makes an endpoint answer with a status and a body, and headers as
// names and values, whatever it is asked.
func (s *Server) Answer(at Endpoint, status int, body string, header ...string) {
	s.put(at, func(w http.ResponseWriter, _ *http.Request) bool {
		if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
			w.Header().Set("Content-Type", "application/json")
		}
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return false
	})
}

// TokenError makes the token endpoint answer with an error.
func (s *Server) TokenError(status int, body string) { s.Answer(Token, status, body) }

// ProfileError makes the profile's endpoint answer with an error, or with
// another profile if the status is 200.
func (s *Server) ProfileError(status int, body string) { s.Answer(Profile, status, body) }

// HugeProfile makes the profile larger than a client should take, though it is
// a fine one as far as a client would read.
func (s *Server) HugeProfile() {
	s.ProfileError(http.StatusOK, `{"id":1,"sub":"1","user_id":"1","id_str":"1"}`+strings.Repeat(" ", 1<<20))
}

// Up ends all faults; requests that are held go on.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
	for _, release := range s.held {
		release()
	}
	s.held = nil
}
