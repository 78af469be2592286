package httpkit

import "context"

// OnEnd calls f when a context ends, unless stop was called before. The caller must call stop once. stop waits for a
// running f: otherwise f could use an exchange and a connection that belong to another request by then.
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
