package bus

import (
	"context"
	"errors"
	"sync"

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
	refused bool // the server has rejected the user since the connection was last up
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
	s.lastErr, s.refused = nil, false
	s.broadcast()
}

// attemptFailed records why an attempt to connect failed, and reports whether to log it: the first
// error of an outage, and the first rejection of the user, which lasts until somebody acts.
func (s *connState) attemptFailed(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.lastErr == nil
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

func (s *connState) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lastErr == nil:
		return "no connection yet"
	case errors.Is(s.lastErr, nats.ErrAuthorization):
		return "the server rejects the user: check name and password, or the other credentials"
	default:
		return s.lastErr.Error()
	}
}
