package bus

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
)

// link is what is known of the connection's state, and ways to wait for it to
// change.
type link struct {
	ended chan struct{} // closed when the connection is closed for good

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, at each change
	session context.Context
	lose    context.CancelFunc // ends session
	last    error
}

func newLink() *link {
	l := &link{ended: make(chan struct{}), changed: make(chan struct{})}
	l.session, l.lose = context.WithCancel(context.Background())
	l.lose()
	return l
}

func (l *link) up() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose()
	l.session, l.lose = context.WithCancel(context.Background())
	l.last = nil
	l.announce()
}

// down notes why the connection is away, and reports whether that is news.
func (l *link) down(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.last = err
	}
	if l.session.Err() != nil {
		return false
	}
	l.lose()
	l.announce()
	return true
}

func (l *link) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// change is closed at the next change of the connection's state.
func (l *link) change() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// current ends when the connection that is up now is lost; it has ended
// already when none is up.
func (l *link) current() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// awaitUp waits until a connection is up.
func (l *link) awaitUp(ctx context.Context) error {
	for {
		changed := l.change()
		if l.current().Err() == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errs.Wrap(ctx.Err(), errs.Canceled, "waiting for the connection to the bus")
		}
	}
}

func (l *link) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.last == nil:
		return "no connection yet"
	case errors.Is(l.last, nats.ErrAuthorization):
		return "the server refuses the user"
	default:
		return l.last.Error()
	}
}
