// Package logctx carries log attributes in a context: the id of a request, its
// actor and its trace, say. A Handler adds them to each record that is logged with
// that context, however deep in the program.
package logctx

import (
	"context"
	"log/slog"
	"slices"
)

// Key is the key under which a context returns its Source.
type Key struct{}

// Source has log attributes. They are computed only when a record is logged, so
// that carrying a Source costs a request nothing else.
type Source interface {
	// LogAttrs includes the attributes of the contexts that the source's was
	// derived from; see Attrs.
	LogAttrs() []slog.Attr
}

// With returns a context whose records carry attributes besides those of ctx.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	return context.WithValue(ctx, Key{}, &attributes{ctx, attrs})
}

type attributes struct {
	parent context.Context
	own    []slog.Attr
}

func (a *attributes) LogAttrs() []slog.Attr { return append(Attrs(a.parent), a.own...) }

// Attrs returns the attributes of a context. Of several with one key the last one
// is the innermost.
func Attrs(ctx context.Context) []slog.Attr {
	if s, ok := ctx.Value(Key{}).(Source); ok {
		return s.LogAttrs()
	}
	return nil
}

// Handler adds the attributes of the context to each record. An attribute that a
// record has already, or that an inner context has set, replaces an outer one.
type Handler struct{ slog.Handler }

// NewHandler returns a Handler that writes to h. It returns h if that is a Handler
// already.
func NewHandler(h slog.Handler) slog.Handler {
	if _, ok := h.(Handler); ok {
		return h
	}
	return Handler{h}
}

// Handle implements slog.Handler.
func (h Handler) Handle(ctx context.Context, r slog.Record) error {
	attrs := Attrs(ctx)
	if len(attrs) == 0 {
		return h.Handler.Handle(ctx, r)
	}
	present := make([]string, 0, 16)
	r.Attrs(func(a slog.Attr) bool {
		present = append(present, a.Key)
		return true
	})
	r = r.Clone()
	for _, a := range slices.Backward(attrs) {
		if !slices.Contains(present, a.Key) {
			present = append(present, a.Key)
			r.AddAttrs(a)
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return Handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h Handler) WithGroup(name string) slog.Handler { return Handler{h.Handler.WithGroup(name)} }
