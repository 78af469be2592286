package listener

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Recover turns a panic of a handler into an error with the stack, so that one
// event does not end the process. It is a transient error, so the event is
// retried. Every listener has Recover around all other middleware.
func Recover() Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) (err error) {
			defer recovered(&err)
			return next(ctx, e)
		}
	}
}

// recovered turns a panic into the error of the function that defers it.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
	}
}
