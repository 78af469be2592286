package listener

import (
	"context"
	"fmt"
	"runtime/debug"
)

// recovered makes a panic of a handler an error, stack included, so that one
// event takes down nobody. It may pass by itself: it is tried again like any
// other fault.
func recovered(next Handler) Handler {
	return func(ctx context.Context, e *Event) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
			}
		}()
		return next(ctx, e)
	}
}
