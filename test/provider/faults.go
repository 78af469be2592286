package provider

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Endpoint is an endpoint of a provider.
type Endpoint string

// The endpoints. Any stands for all of them.
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

// fault is called before an endpoint's handler, and reports whether that is
// still called.
type fault func(w http.ResponseWriter, r *http.Request) bool

func (s *Server) put(at Endpoint, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[at] = f
}

// Down closes connections to an endpoint without a reply.
func (s *Server) Down(at Endpoint) {
	s.put(at, func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
}

// Slow delays requests to an endpoint until release or Up is called, or the
// client disconnects. Each delayed request is sent to waiting.
func (s *Server) Slow(at Endpoint) (waiting <-chan struct{}, release func()) {
	held, released := make(chan struct{}, 100), make(chan struct{})
	s.put(at, func(_ http.ResponseWriter, r *http.Request) bool {
		// The server detects that a client disconnects only after it has read
		// the body.
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

// Answer makes an endpoint reply with a status and a body, and headers as names
// and values, to every request.
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

// TokenError makes the token endpoint reply with an error.
func (s *Server) TokenError(status int, body string) { s.Answer(Token, status, body) }

// ProfileError makes the profile endpoint reply with an error, or with another
// profile if the status is 200.
func (s *Server) ProfileError(status int, body string) { s.Answer(Profile, status, body) }

// HugeProfile makes the profile larger than a client should accept, though
// valid up to a client's limit.
func (s *Server) HugeProfile() {
	s.ProfileError(http.StatusOK, `{"id":1,"sub":"1","user_id":"1","id_str":"1"}`+strings.Repeat(" ", 1<<20))
}

// Up ends all faults; delayed requests continue.
func (s *Server) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
	for _, release := range s.held {
		release()
	}
	s.held = nil
}
