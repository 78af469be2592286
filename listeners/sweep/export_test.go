package sweep

import (
	"context"
	"time"
)

// SetWait replaces the function with which the worker waits for the indexes.
func (w *Worker) SetWait(wait func(ctx context.Context, d time.Duration) error) { w.wait = wait }
