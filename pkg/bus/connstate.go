package bus

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
)

// connState is the state of the connection, and ways to wait for it to change.
type connState struct {
	closed chan struct{} // closed when the connection is closed for good

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, at each change
	session context.Context
	end     context.CancelFunc // of session
	lastErr error
	cause   error     // why the server itself has ended or refused a connection, most recently
	causeAt time.Time // when it said so
	refused bool      // the server has rejected the user since the connection was last up
}

func newConnState() *connState {
	s := &connState{closed: make(chan struct{}), changed: make(chan struct{})}
	s.session, s.end = context.WithCancel(context.Background())
	s.end()
	return s
}

func (s *connState) up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.session, s.end = context.WithCancel(context.Background())
	s.lastErr, s.refused, s.cause = nil, false, nil
	s.broadcast()
}

// attemptFailed records why an attempt to connect failed, and reports whether to log it: the first
// error of an outage, and the first rejection of the user, which lasts until somebody acts.
func (s *connState) attemptFailed(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.lastErr == nil
	s.noteCause(err)
	if errors.Is(err, nats.ErrAuthorization) && !s.refused {
		s.refused, first = true, true
	}
	s.lastErr = err
	return first
}

// down records why the connection is lost, and reports whether it was up.
func (s *connState) down(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lastErr = err
		s.noteCause(err)
	}
	if s.session.Err() != nil {
		return false
	}
	s.end()
	s.broadcast()
	return true
}

func (s *connState) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// change is closed at the next change of the connection's state.
func (s *connState) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// current is a context that ends when the connection that is up now is lost; it
// has ended already when none is up.
func (s *connState) current() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// awaitUp waits until a connection is up.
func (s *connState) awaitUp(ctx context.Context) error {
	for {
		changed := s.change()
		if s.current().Err() == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "waiting for the connection to the bus")
		}
	}
}

// causeTime is for how long the reason of a server counts without being repeated. Attempts are seconds apart.
const causeTime = 30 * time.Second

// serverReasons are a server's texts when it ends or refuses a connection, for people. Its reply often comes with the
// end of the connection, which is an error too, and says nothing.
var serverReasons = []struct {
	err  error
	text string // of the server
	says string
}{
	{nats.ErrAuthorization, nats.AUTHORIZATION_ERR,
		"the server rejects the user: check name and password, or the other credentials"},
	{nats.ErrAuthExpired, nats.AUTHENTICATION_EXPIRED_ERR, "the server says that the user's credentials have expired"},
	{nats.ErrAuthRevoked, nats.AUTHENTICATION_REVOKED_ERR, "the server says that the user's credentials are revoked"},
	{nats.ErrAccountAuthExpired, nats.ACCOUNT_AUTHENTICATION_EXPIRED_ERR,
		"the server says that the account's credentials have expired"},
	{nats.ErrMaxConnectionsExceeded, nats.MAX_CONNECTIONS_ERR,
		"the server has as many connections as its max_connections permits"},
	{nats.ErrMaxAccountConnectionsExceeded, nats.MAX_ACCOUNT_CONNECTIONS_ERR,
		"the server has as many connections as it permits the account"},
}

// serverReason returns a server's reason, or "". The client has an error of its own for most of it, but not always.
func serverReason(err error) string {
	for _, r := range serverReasons {
		if errors.Is(err, r.err) || err != nil && strings.Contains(strings.ToLower(err.Error()), r.text) {
			return r.says
		}
	}
	return ""
}

// record records an error that may be the server's reason.
func (s *connState) record(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteCause(err)
}

func (s *connState) noteCause(err error) {
	if serverReason(err) != "" {
		s.cause, s.causeAt = err, time.Now()
	}
}

func (s *connState) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cause != nil && time.Since(s.causeAt) < causeTime:
		return serverReason(s.cause)
	case s.lastErr == nil:
		return "no connection yet"
	default:
		return s.lastErr.Error()
	}
}
