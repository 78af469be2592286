package binary

import (
	"context"
	"time"
)

// SetWait has a service wait in another way.
func (s *Service) SetWait(wait func(ctx context.Context, d time.Duration) error) { s.wait = wait }

// DueAt returns the first page of the entries that are due at another time.
func (s *Service) DueAt(ctx context.Context, at time.Time) (DuePage, error) {
	for page, err := range s.dueAt(ctx, at, 100) {
		return page, err
	}
	return DuePage{}, nil
}

// How names and types from clients are cleaned.
var (
	CleanName = cleanName
	CleanType = cleanType
)

// RemoveStrayVariantsBy is RemoveStrayVariants by pages of another size.
func (s *Service) RemoveStrayVariantsBy(ctx context.Context, page int) (int, error) {
	return s.removeStrayVariants(ctx, page)
}
