package certificate

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"
)

// logCore passes the records of the library to a handler of slog. It gives
// records of the level info, which report single steps, the level debug.
type logCore struct {
	handler slog.Handler
	attrs   []slog.Attr
}

var _ zapcore.Core = (*logCore)(nil)

// unanswered is the library's message about an unknown challenge. Any client can send one. If the authority sent it,
// the order fails with the reason.
const unanswered = "tls-alpn challenge"

func levelOf(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// Enabled implements zapcore.LevelEnabler.
func (c *logCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), levelOf(l))
}

// With implements zapcore.Core.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{handler: c.handler, attrs: append(slices.Clone(c.attrs), attrsOf(fields)...)}
}

// Check implements zapcore.Core.
func (c *logCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := levelOf(e.Level)
	if e.Message == unanswered {
		if level = slog.LevelDebug; !c.handler.Enabled(context.Background(), level) {
			return nil
		}
	}
	r := slog.NewRecord(e.Time, level, "certificates: "+e.Message, 0)
	r.AddAttrs(c.attrs...)
	r.AddAttrs(attrsOf(fields)...)
	return c.handler.Handle(context.Background(), r)
}

// Sync implements zapcore.Core.
func (c *logCore) Sync() error { return nil }

func attrsOf(fields []zapcore.Field) []slog.Attr {
	encoded := zapcore.NewMapObjectEncoder()
	var attrs []slog.Attr
	for _, f := range fields {
		f.AddTo(encoded)
	}
	for name, value := range encoded.Fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	return attrs
}
