package binary

import (
	"context"
	"time"
)

// SetPause has a service wait in another way.
func (s *Service) SetPause(pause func(ctx context.Context, d time.Duration) error) { s.pause = pause }

// What becomes of what a client says.
var (
	CleanName = cleanName
	CleanType = cleanType
)
