// Package clock steps the wall clock of programs that a test runs, while they run.
//
// Go reads the clock without the C library, so nothing can be preloaded that
// changes it, and the system's clock belongs to everyone. So the program is built
// with another time.Now (programs.BelfryWithClock, or Overlay for another one):
// it adds an offset from a file that the environment variable BELFRY_TEST_CLOCK
// names. Without the variable the program has the system's clock.
//
//	c := clock.New(t)
//	cmd.Env = append(os.Environ(), c.Env())
//	c.Step(time.Hour)  // for every program that has c.Env() in its environment
//	c.Step(-time.Hour)
//
// Like a step of the system's clock it changes the wall clock only: timers, and
// the monotonic readings by which Go compares two times of one process, continue. The
// times of files are the kernel's, and do not change.
package clock

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Clock is a wall clock that some programs share.
type Clock struct {
	path   string
	offset *int64 // in the file
}

// New returns a clock that shows the system's time.
func New(t testing.TB) *Clock {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a test's own file
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // the mapping stays
	if err := f.Truncate(8); err != nil {
		t.Fatal(err)
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(os.NewSyscallError("mmap", err))
	}
	t.Cleanup(func() { _ = syscall.Munmap(data) })
	return &Clock{path: path, offset: (*int64)(unsafe.Pointer(&data[0]))} //nolint:gosec // 8 bytes, aligned to a page
}

// Env is what a program needs in its environment to have this clock.
func (c *Clock) Env() string { return "BELFRY_TEST_CLOCK=" + c.path }

// Step sets the clock forward, or back, by some time at once.
func (c *Clock) Step(by time.Duration) { atomic.AddInt64(c.offset, int64(by)) }

// Set sets the clock to the system's time plus an offset at once.
func (c *Clock) Set(offset time.Duration) { atomic.StoreInt64(c.offset, int64(offset)) }
