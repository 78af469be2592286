package filestore

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
)

// health records whether the folder is usable. After a disk error it stays
// unusable: only recovery at the next start makes memory and disk agree again.
type health struct {
	log      *slog.Logger
	firstErr atomic.Pointer[errs.Error]
	failed   chan struct{} // closed at the first error
	active   atomic.Bool   // Pebble is open and not being closed
	closing  atomic.Bool   // Pebble is being closed, or is closed
	manifest atomic.Bool   // Pebble has written a manifest since it was opened

	awaitSpace func(full error) error // see Options; may be nil
	giveUp     chan struct{}          // closed when Pebble may hang while it is opened or closed
	giveUpOnce sync.Once
	giveUpErr  error

	// halted: a goroutine of Pebble was stopped and may hold locks forever, so
	// that even its Close can't be called.
	halted atomic.Bool
}

func newHealth(log *slog.Logger) *health {
	return &health{log: log, failed: make(chan struct{}), giveUp: make(chan struct{})}
}

func (h *health) err() error {
	if e := h.firstErr.Load(); e != nil {
		return e
	}
	return nil
}

// fail records the first error and returns the error that all calls report from
// then on.
func (h *health) fail(cause error) error {
	e := &errs.Error{
		Kind:    errs.Unavailable,
		Message: "writing the data folder failed: check the disk, then restart belfry",
		Err:     cause,
	}
	if h.firstErr.CompareAndSwap(nil, e) {
		close(h.failed)
		h.log.Error("writing the data folder failed; all further requests are refused", "error", cause)
	}
	return h.firstErr.Load()
}

// stall records an error after which Pebble may hang while it is opened or closed.
func (h *health) stall(cause error) {
	h.giveUpOnce.Do(func() {
		h.giveUpErr = cause
		close(h.giveUp)
	})
}

// cause returns the error after which Pebble has hung.
func (h *health) cause() error {
	select {
	case <-h.giveUp:
		return h.giveUpErr
	default:
		return h.err()
	}
}

// guard calls a function of Pebble, and reports whether it has returned. It has not if
// Fatalf has ended it, or if it hangs after an error on a goroutine of Pebble.
func (h *health) guard(call func()) bool {
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		call()
		returned = true
	}()
	select {
	case <-done:
	case <-h.giveUp:
		if !h.halted.Load() {
			timer := time.NewTimer(stuckAfter)
			defer timer.Stop()
			select {
			case <-done:
			case <-timer.C:
				h.halted.Store(true)
				return false
			}
			break
		}
		return false
	}
	if !returned {
		h.halted.Store(true)
	}
	return returned
}

// markClosed makes all later calls fail.
func (h *health) markClosed() {
	h.firstErr.CompareAndSwap(nil, errs.New(errs.Unavailable, "the data folder has been closed"))
}

// wrapReadError returns a read error of Pebble with its kind.
func wrapReadError(err error) error {
	if err == nil {
		return nil
	}
	if pebble.IsCorruptionError(err) {
		return errs.Wrap(err, errs.Internal, "the data folder is corrupt")
	}
	return errs.Wrap(err, errs.Unavailable, "the data folder can't be read")
}

// fatalError is the panic value that passes an error from Pebble's Fatalf to the
// caller of Pebble.
type fatalError struct{ error }

// recoverFatal turns a fatalError into an error. Every method that calls Pebble
// defers it. Other panics are bugs and continue.
func (h *health) recoverFatal(err *error) {
	switch r := recover().(type) {
	case nil:
	case fatalError:
		*err = h.fail(r.error)
	default:
		panic(r)
	}
}

// Infof implements pebble.Logger.
func (h *health) Infof(format string, args ...any) {
	h.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

// Errorf implements pebble.Logger.
func (h *health) Errorf(format string, args ...any) {
	h.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. Pebble expects that it does not return, and by
// default it ends the process. Here the backend becomes unavailable and only the
// goroutine ends: by a panic that recoverFatal recovers if a method of this
// package called Pebble, else, on a goroutine of Pebble, by Goexit, which runs
// its deferred unlocks.
func (h *health) Fatalf(format string, args ...any) {
	cause := fmt.Errorf("pebble: "+format, args...)
	h.halted.Store(true)
	_ = h.fail(cause)
	h.stall(cause)
	if calledFromPackage() {
		panic(fatalError{cause})
	}
	runtime.Goexit()
}

// calledFromPackage reports whether a method of Backend or store is on this
// goroutine's stack.
func calledFromPackage() bool {
	pcs := make([]uintptr, 128)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/filestore.(*Backend).") ||
			strings.Contains(frame.Function, "/filestore.(*store).") ||
			strings.Contains(frame.Function, "/filestore.(*committer).") ||
			strings.HasSuffix(frame.Function, "/filestore.open") {
			return true
		}
		if !more {
			return false
		}
	}
}

// listener receives the errors of flushes and compactions, and notices manifests.
func (h *health) listener() *pebble.EventListener {
	return &pebble.EventListener{
		ManifestCreated: func(pebble.ManifestCreateInfo) { h.manifest.Store(true) },
		BackgroundError: func(err error) {
			_ = h.fail(err)
			h.stall(err)
		},
	}
}

// lock is a mutex that waiters stop waiting for when their context ends or the
// disk fails: its holder may then be blocked forever.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) acquire(ctx context.Context, h *health) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-h.failed:
		return h.err()
	case <-ctx.Done():
		return errCanceled(ctx.Err())
	}
}

func (l lock) release() { <-l }
