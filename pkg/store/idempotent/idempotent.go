// Package idempotent executes writes to stores that have an idempotency key: however often a request is
// sent, in however many processes, it has one effect and one reply. HTTP (api/objects) and operations over
// the bus (natsapi) share it.
//
// A write with a key takes these steps; see attempt.go:
//
//  1. The key is stored in the store of requests, with a fingerprint of the request and
//     the uuid, the incarnation and the revision that the write applies to.
//  2. The write is executed. From then on its record shows that it was applied (see
//     store.Idempotency).
//  3. The reply is stored with the key.
//  4. The reply is returned.
//
// A repeated request, after any crash, gets the stored reply if there is one.
// Otherwise the record shows whether the write still has to be executed.
package idempotent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nuid"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// MaxReply is the largest body of a reply in bytes that is stored, and so the largest that a request
// with a key can have.
const MaxReply = 256 << 10

// DefaultTakeoverDelay is the default of Options.TakeoverDelay.
const DefaultTakeoverDelay = 3 * time.Second

// Options are the options of an Executor. Requests is required.
type Options struct {
	Requests *store.Store     // opened with RequestsOptions
	Now      func() time.Time // nil: time.Now

	// TakeoverDelay is how long another executor may take to reply before this one executes
	// the same request; 0: DefaultTakeoverDelay. The write still takes effect once.
	TakeoverDelay time.Duration

	// Kept limits the replies that are kept for each client; nil: no limit.
	Kept *Kept

	// TombstoneRetention is how long tombstones are kept; 0: forever.
	TombstoneRetention time.Duration
}

// Executor executes requests with keys. It is safe for concurrent use.
type Executor struct {
	opts     Options
	instance string         // unique to this executor
	locks    *store.KeyLock // by Request.ID
}

// New returns an Executor.
func New(o Options) *Executor {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.TakeoverDelay == 0 {
		o.TakeoverDelay = DefaultTakeoverDelay
	}
	return &Executor{opts: o, instance: nuid.Next(), locks: store.NewKeyLock()}
}

// Op is the operation of a request.
type Op uint8

// The operations.
const (
	Save Op = iota
	Update
	Delete
)

// Request is a write with a key.
type Request struct {
	ID          string // of the key: see KeyID
	Fingerprint string // of the request: see Fingerprint
	Op          Op
	Store       *store.Store
	UUID        string // of the object; "": one is chosen for Save
	Client      string // of the reply; "": its bytes are not counted

	// Check returns the error of a request that is refused before its key is stored; nil: none is.
	Check func(ctx context.Context) error

	// Perform executes the write of an object once.
	Perform func(ctx context.Context, uuid string, i *store.Idempotency) (Reply, error)

	// Applied returns the reply to a write that was applied before. The status is that of the object,
	// or for a Delete that of its tombstone.
	Applied func(ctx context.Context, status store.WriteStatus) Reply

	// Failed returns the reply for an error that repeating the request does not change.
	Failed func(err error) Reply
}

// Reply is a reply as it is stored. Body is JSON of at most MaxReply bytes.
type Reply struct {
	UUID   string // of the object; set by Do
	Status int    // of HTTP; over the bus that of a problem, and 0 for a success
	Text   string // over the bus that of a problem
	Tag    string // over HTTP the entity tag
	Body   []byte

	Replayed bool // it is that of an earlier request with the key; set by Do
}

// KeyID returns the uuid of a key in the store of requests: within a scope, which begins with the
// name of a store. Objects hold it too, so it is short. A part must not contain NUL.
func KeyID(key string, scope ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append(scope, key), "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Fingerprint identifies a request's content, to detect different requests with the same key.
func Fingerprint(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Do executes a request, or returns the reply that it had before. Errors, after which the request can be
// sent again: Conflict when the key was used for another request, those of Request.Check, and those that
// repeating the request can change.
func (x *Executor) Do(ctx context.Context, r *Request) (Reply, error) {
	unlock, err := x.locks.Lock(ctx, r.ID)
	if err != nil {
		return Reply{}, err
	}
	defer unlock()
	for {
		o, err := x.tryOnce(ctx, r)
		if !errors.Is(err, errPending) {
			return o, err
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return Reply{}, err
		}
	}
}

// IsFinal reports whether repeating a request on the same data would fail with the
// same error, so that the error is the reply.
func IsFinal(err error) bool {
	if errors.Is(err, store.ErrContended) || errors.Is(err, store.ErrStaleRevision) {
		return false
	}
	switch errs.KindOf(err) {
	case errs.Internal, errs.Unavailable, errs.Canceled, errs.Limited:
		return false
	default:
		return true
	}
}
