package listener

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Recover makes a panic of a handler an error, stack included, so that one
// event takes down nobody. It may pass by itself: it is tried again like any
// other fault. Every listener has it around all other middleware.
func Recover() Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) (err error) {
			defer recovered(&err)
			return next(ctx, e)
		}
	}
}

// recovered makes a panic the error of the function that it is deferred in.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
	}
}
