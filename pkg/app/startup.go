package app

import (
	"sync/atomic"

	"belfry/pkg/errs"
)

// startup is why a process does not serve yet. The zero value says that it starts.
type startup struct{ waits atomic.Pointer[errs.Error] }

// wait says what the start waits for.
func (s *startup) wait(what string) {
	s.waits.Store(errs.New(errs.Unavailable, "belfry is starting and waits for %s", what))
}

// resume says that the start waits for nothing any more.
func (s *startup) resume() { s.waits.Store(nil) }

// err returns why the process does not serve yet.
func (s *startup) err() error {
	if err := s.waits.Load(); err != nil {
		return err
	}
	return errs.New(errs.Unavailable, "belfry is starting")
}
