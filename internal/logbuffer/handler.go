package logbuffer

import (
	"context"
	"encoding"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"belfry/internal/logctx"
)

// requestKey is the key of the id of a request.
const requestKey = "request"

// Handler keeps the records that another handler writes.
type Handler struct {
	next    slog.Handler
	buffer  *Buffer
	request string // of WithAttrs
	preset  string // attributes of WithAttrs
	prefix  string // of WithGroup: "group."
}

// NewHandler returns a handler that keeps each record in a buffer and passes it on. It keeps only records that next
// writes, so that nothing is in memory that is not in the log.
func NewHandler(next slog.Handler, b *Buffer) *Handler { return &Handler{next: next, buffer: b} }

// Of returns the buffer that keeps the lines of a log; nil for none.
func Of(log *slog.Logger) *Buffer {
	h := log.Handler()
	if outer, ok := h.(logctx.Handler); ok {
		h = outer.Handler
	}
	if keeps, ok := h.(*Handler); ok {
		return keeps.buffer
	}
	return nil
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	t := texts{attrs: make([]byte, 0, 256), request: h.request}
	t.attrs = append(t.attrs, h.preset...)
	r.Attrs(func(a slog.Attr) bool {
		t.add(h.prefix, a)
		return true
	})
	l := Line{At: r.Time, Level: r.Level}
	var message, attrs, request bool
	l.Message, message = cut(r.Message, maxMessage)
	l.Attrs, attrs = cut(string(t.attrs), maxAttrs)
	l.Request, request = cut(t.request, maxRequest)
	l.Cut = message || attrs || request
	h.buffer.add(l)
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.next = h.next.WithAttrs(attrs)
	t := texts{attrs: []byte(h.preset), request: h.request}
	for _, a := range attrs {
		t.add(h.prefix, a)
	}
	derived.preset, derived.request = string(t.attrs), t.request
	return &derived
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	derived := *h
	derived.next = h.next.WithGroup(name)
	if name != "" {
		derived.prefix += name + "."
	}
	return &derived
}

// texts are the attributes of a record.
type texts struct {
	attrs   []byte
	request string
}

// add adds an attribute, as slog.TextHandler writes it. That of the request is apart.
func (t *texts) add(prefix string, a slog.Attr) {
	value := a.Value.Resolve()
	switch {
	case value.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range value.Group() {
			t.add(prefix, inner)
		}
		return
	case a.Equal(slog.Attr{}):
		return
	case prefix == "" && a.Key == requestKey:
		t.request = text(value)
		return
	case len(t.attrs) > maxAttrs: // it is cut there
		return
	}
	if len(t.attrs) > 0 {
		t.attrs = append(t.attrs, ' ')
	}
	t.quote(prefix + a.Key)
	t.attrs = append(t.attrs, '=')
	switch value.Kind() {
	case slog.KindInt64:
		t.attrs = strconv.AppendInt(t.attrs, value.Int64(), 10)
	case slog.KindUint64:
		t.attrs = strconv.AppendUint(t.attrs, value.Uint64(), 10)
	default:
		t.quote(text(value))
	}
}

func text(v slog.Value) string {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().UTC().Format(time.RFC3339Nano)
	case slog.KindAny:
		switch any := v.Any().(type) {
		case encoding.TextMarshaler: // it may hide a part
			return marshaled(any)
		case []byte:
			return string(any)
		}
		return fmt.Sprint(v.Any())
	}
	return v.String()
}

// marshaled returns the text of a value as slog writes it: a nil pointer must not end the process that logs it.
func marshaled(value encoding.TextMarshaler) (shown string) {
	defer func() {
		if p := recover(); p != nil {
			shown = fmt.Sprint("!PANIC: ", p)
		}
	}()
	text, err := value.MarshalText()
	if err != nil {
		return "!ERROR: " + err.Error()
	}
	return string(text)
}

// quote adds a text, in quotes where it could be taken for several.
func (t *texts) quote(text string) {
	if text, _ = cut(text, maxAttrs+1); text == "" || !utf8.ValidString(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || r == 0x7f }) {
		t.attrs = strconv.AppendQuote(slices.Grow(t.attrs, len(text)+2), text)
		return
	}
	t.attrs = append(t.attrs, text...)
}

// cut returns a text of at most so many bytes, which is valid UTF-8, and whether it was longer.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:most]), true
}
