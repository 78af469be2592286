package bus

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// ErrPermissionDenied is the cause with which a context of UntilDenied ends.
var ErrPermissionDenied = errors.New("the bus's user lacks the permission")

// denials ends requests and subscriptions that the server denies. The server sends no reply to
// those: it reports the subject to the connection.
type denials struct {
	mu      sync.Mutex
	waiting map[*pendingRequest]struct{}
}

// DeniedError is ErrPermissionDenied with the subject that the server denies.
type DeniedError struct{ Subject string }

func (d *DeniedError) Error() string { return ErrPermissionDenied.Error() + " for " + d.Subject }

// Unwrap returns ErrPermissionDenied.
func (d *DeniedError) Unwrap() error { return ErrPermissionDenied }

type pendingRequest struct {
	subjects []string
	end      context.CancelCauseFunc
}

// UntilDenied returns a context for requests on the subjects, and on subjects
// below them, and for subscriptions to these. It ends with the cause
// ErrPermissionDenied as soon as the server denies one of them to this user;
// without it such a request runs into its timeout, and such a subscription
// receives nothing. The returned function must be called.
func (b *Bus) UntilDenied(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc) {
	return b.denials.watch(ctx, subjects)
}

// UntilDenied is that of Bus.
func (c *Client) UntilDenied(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc) {
	return c.denials.watch(ctx, subjects)
}

func (d *denials) watch(ctx context.Context, subjects []string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	p := &pendingRequest{subjects, end}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[*pendingRequest]struct{}{}
	}
	d.waiting[p] = struct{}{}
	return ctx, func() {
		end(nil)
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting, p)
	}
}

var deniedSubject = regexp.MustCompile(`(?i)violation for (?:publish|subscription) to "(.+?)"`)

// notify ends the contexts that an error of the connection is about, and reports
// whether there were any.
func (d *denials) notify(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	found := deniedSubject.FindStringSubmatch(err.Error())
	if found == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	notified := false
	for p := range d.waiting {
		for _, s := range p.subjects {
			if found[1] == s || strings.HasPrefix(found[1], s+".") {
				p.end(&DeniedError{found[1]})
				notified = true
			}
		}
	}
	return notified
}
