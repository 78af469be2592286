package backing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// Host starts servers outside of a test: those that the tests of a package share, or that a benchmark uses. It is a
// testing.TB as far as this package needs one. It is safe for concurrent use.
type Host struct {
	testing.TB
	ctx context.Context
	on  []int

	mu   sync.Mutex
	pids []int
	undo []func()
	errs []error
}

// failure travels as a panic from Fatal to whoever started the server.
type failure struct{ error }

// WithHost ends the servers of a host when do returns. The error is that of do, of a server that did not start, or of
// one that ended by itself.
func WithHost(ctx context.Context, do func(h *Host) error) (err error) {
	h := &Host{ctx: ctx}
	defer func() {
		for i := len(h.undo) - 1; i >= 0; i-- {
			h.undo[i]()
		}
		err = errors.Join(append([]error{err}, h.errs...)...)
		switch p := recover().(type) {
		case nil:
		case failure:
			err = errors.Join(p.error, err)
		default:
			panic(p)
		}
	}()
	return do(h)
}

// On binds the servers that are started from now on to processors. It is for a host that starts one server after the
// other.
func (h *Host) On(processors []int) { h.on = processors }

// Processes returns the ids of the processes that the host has started.
func (h *Host) Processes() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.pids)
}

func (h *Host) note(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pids = append(h.pids, pid)
}

// Helper has no effect.
func (h *Host) Helper() {}

// Context returns that of the host.
func (h *Host) Context() context.Context { return h.ctx }

// Cleanup has f called at the end, in reverse order.
func (h *Host) Cleanup(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.undo = append(h.undo, f)
}

// Errorf notes an error for WithHost.
func (h *Host) Errorf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, fmt.Errorf(format, args...))
}

// Fatal panics with an error.
func (h *Host) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf panics with an error.
func (h *Host) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// TempDir makes a folder that is removed at the end.
func (h *Host) TempDir() string {
	folder, err := os.MkdirTemp("", "belfry-host-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
