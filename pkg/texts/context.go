package texts

import "context"

type languageKey struct{}

// WithLanguage returns a context with the tag of the language of the person who makes a request.
func WithLanguage(ctx context.Context, tag string) context.Context {
	return context.WithValue(ctx, languageKey{}, tag)
}

// Asked returns the tag of the language of the person who makes a request; "" if it is not known.
func Asked(ctx context.Context) string {
	tag, _ := ctx.Value(languageKey{}).(string)
	return tag
}
