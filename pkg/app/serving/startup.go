package serving

import (
	"sync/atomic"

	"belfry/pkg/errs"
)

// Startup is the reason why a process does not serve yet. The zero value means that it is starting.
type Startup struct{ waits atomic.Pointer[errs.Error] }

// Wait records the cause of a wait.
func (s *Startup) Wait(what string) {
	s.waits.Store(errs.New(errs.Unavailable, "belfry is starting and waits for %s", what))
}

// Resume records the end of the wait.
func (s *Startup) Resume() { s.waits.Store(nil) }

// Err returns the reason why the process does not serve yet.
func (s *Startup) Err() error {
	if err := s.waits.Load(); err != nil {
		return err
	}
	return errs.New(errs.Unavailable, "belfry is starting")
}
