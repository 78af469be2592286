package bus

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// ErrRefused is the cause with which a context of Asking ends.
var ErrRefused = errors.New("the bus's user lacks the right")

// refusals lets requests know that the server refuses them: it answers none of
// these, and tells the connection which subject it was.
type refusals struct {
	mu      sync.Mutex
	waiting map[*asking]struct{}
}

type asking struct {
	subjects []string
	end      context.CancelCauseFunc
}

// Asking is for requests on subjects, or on some that begin with one of them: it
// ends with ErrRefused as its cause as soon as the server refuses one of them to
// this user, of which a request would otherwise only hear that there is no
// answer. The function that it returns must be called.
func (b *Bus) Asking(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc) {
	return b.refusals.asking(ctx, subjects)
}

// Asking is that of a Bus.
func (c *Client) Asking(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc) {
	return c.refusals.asking(ctx, subjects)
}

func (r *refusals) asking(ctx context.Context, subjects []string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	a := &asking{subjects, end}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[*asking]struct{}{}
	}
	r.waiting[a] = struct{}{}
	return ctx, func() {
		end(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, a)
	}
}

var refusedSubject = regexp.MustCompile(`(?i)violation for publish to "(.+?)"`)

// hear takes what the connection reports, and says whether somebody waited for it.
func (r *refusals) hear(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	found := refusedSubject.FindStringSubmatch(err.Error())
	if found == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	heard := false
	for a := range r.waiting {
		for _, s := range a.subjects {
			if found[1] == s || strings.HasPrefix(found[1], s+".") {
				a.end(ErrRefused)
				heard = true
			}
		}
	}
	return heard
}
