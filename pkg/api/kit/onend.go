package kit

import "context"

// OnEnd has f called when a context ends, unless stop was called before. stop waits for a call that has begun, and is called
// once: a handler that returned would leave it an exchange and a connection that are those of another request.
func OnEnd(ctx context.Context, f func()) (stop func()) {
	done := make(chan struct{})
	remove := context.AfterFunc(ctx, func() {
		defer close(done)
		f()
	})
	return func() {
		if !remove() {
			<-done
		}
	}
}
