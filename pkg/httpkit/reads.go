package httpkit

import "context"

type readsKey struct{}

// WithReads has Reads call a function.
func WithReads(ctx context.Context, reads func()) context.Context {
	return context.WithValue(ctx, readsKey{}, reads)
}

// Reads says that the rest of a request changes no object, and may last for hours: a reload need not wait for it before it builds
// indexes.
func Reads(ctx context.Context) {
	if reads, ok := ctx.Value(readsKey{}).(func()); ok {
		reads()
	}
}
