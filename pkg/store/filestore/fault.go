package filestore

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"belfry/pkg/errs"
)

// health is whether the folder can be relied on. Once it can't, it stays so:
// only recovery at the next start makes memory and disk agree again.
type health struct {
	log    *slog.Logger
	fault  atomic.Pointer[errs.Error]
	failed chan struct{} // closed at the first fault
	armed  atomic.Bool   // Pebble is open, and not being closed

	// wrecked: Pebble was stopped in the middle of something. Its locks may be
	// held for ever, so that not even its Close is safe to call.
	wrecked atomic.Bool
}

func newHealth(log *slog.Logger) *health {
	return &health{log: log, failed: make(chan struct{})}
}

func (h *health) err() error {
	if e := h.fault.Load(); e != nil {
		return e
	}
	return nil
}

// fail records the first fault and returns what callers are told from then on.
func (h *health) fail(cause error) error {
	e := &errs.Error{
		Kind:    errs.Unavailable,
		Message: "the store's folder can't be written any more: check the disk, then start belfry again",
		Err:     cause,
	}
	if h.fault.CompareAndSwap(nil, e) {
		close(h.failed)
		h.log.Error("the store's folder failed; refusing all further use", "error", cause)
	}
	return h.fault.Load()
}

// closed makes every later use an error.
func (h *health) closed() {
	h.fault.CompareAndSwap(nil, errs.New(errs.Unavailable, "the store's folder has been closed"))
}

// readError gives an error of Pebble's that met a read its kind.
func readError(err error) error {
	if err == nil {
		return nil
	}
	if pebble.IsCorruptionError(err) {
		return errs.Wrap(err, errs.Internal, "the store's folder is damaged")
	}
	return errs.Wrap(err, errs.Unavailable, "the store's folder can't be read")
}

// fatal travels as a panic from Pebble's Fatalf to whoever called Pebble.
type fatal struct{ error }

// rescue turns a fatal into an error. It is to be deferred by every method
// that calls Pebble. Other panics are mistakes of the program and go on.
func (h *health) rescue(err *error) {
	switch r := recover().(type) {
	case nil:
	case fatal:
		*err = h.fail(r.error)
	default:
		panic(r)
	}
}

// Infof is part of pebble.Logger.
func (h *health) Infof(format string, args ...any) {
	h.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

// Errorf is part of pebble.Logger.
func (h *health) Errorf(format string, args ...any) {
	h.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf is part of pebble.Logger. Pebble expects that it does not return, and
// by default it ends the process. Here the backend becomes unavailable and the
// goroutine alone ends: by a panic that rescue catches where a call of ours
// led here, else, on a goroutine of Pebble's own, by Goexit, which runs its
// deferred unlocks.
func (h *health) Fatalf(format string, args ...any) {
	cause := fmt.Errorf("pebble: "+format, args...)
	h.wrecked.Store(true)
	_ = h.fail(cause)
	if calledByUs() {
		panic(fatal{cause})
	}
	runtime.Goexit()
}

// calledByUs reports whether a method of Backend or store is on this
// goroutine's stack.
func calledByUs() bool {
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

// listener hears of failed flushes and compactions.
func (h *health) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) { _ = h.fail(err) },
	}
}
