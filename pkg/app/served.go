package app

import (
	"context"
	"sync"

	"belfry/pkg/app/part"
	"belfry/pkg/errs"
)

// served is what a process serves now.
type served struct {
	mu       sync.RWMutex
	current  *serving
	retiring sync.WaitGroup // what was served before, and is still in use
}

// now returns what is served. Whoever needs what ends with it uses use; everything else stays usable after a reload.
func (s *served) now() *serving {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current
}

// use returns what is served, which stays complete until done is called.
func (s *served) use() (g *serving, done func()) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.current.inUse.Add(1)
	return s.current, s.current.inUse.Done
}

// replace has another configuration served, and returns the one before. Nothing begins with that any more.
func (s *served) replace(next *serving) (before *serving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.current = s.current, next
	return before
}

// retire calls end once nothing uses a configuration that was replaced.
func (s *served) retire(before *serving, end func(context.Context)) {
	s.retiring.Go(func() {
		before.inUse.Wait()
		end(context.Background())
	})
}

// part has a stop wait for what was replaced, before what that needs is closed.
func (s *served) part() part.Part[*serving] {
	return part.Part[*serving]{
		Name: "what was served before a reload", Start: func(context.Context, *serving) error { return nil },
		Stop: func(ctx context.Context) error {
			done := make(chan struct{})
			go func() {
				s.retiring.Wait()
				close(done)
			}()
			select {
			case <-done:
				return nil
			case <-ctx.Done():
				return errs.Wrap(ctx.Err(), errs.Canceled, "a configuration that was replaced is still in use")
			}
		},
	}
}
