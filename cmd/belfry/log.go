package main

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"

	"belfry/internal/logbuffer"
	"belfry/internal/logctx"
)

// inSeconds has durations in JSON be numbers of seconds, as in metrics. slog writes nanoseconds, which no name says.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

const formatJSON = "json"

// switchable writes in the format that is current for each line. The latest lines stay in memory, for the console.
func switchable(format *atomic.Pointer[string], level slog.Leveler, w io.Writer) *slog.Logger {
	return slog.New(logctx.NewHandler(logbuffer.NewHandler(&formats{
		current: format,
		text:    slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}),
		json:    slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds}),
	}, logbuffer.New())))
}

// formats is a handler for each format of the log.
type formats struct {
	current    *atomic.Pointer[string]
	text, json slog.Handler
}

func (f *formats) Enabled(ctx context.Context, level slog.Level) bool {
	return f.text.Enabled(ctx, level)
}

func (f *formats) Handle(ctx context.Context, r slog.Record) error {
	if *f.current.Load() == formatJSON {
		return f.json.Handle(ctx, r)
	}
	return f.text.Handle(ctx, r)
}

func (f *formats) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &formats{f.current, f.text.WithAttrs(attrs), f.json.WithAttrs(attrs)}
}

func (f *formats) WithGroup(name string) slog.Handler {
	return &formats{f.current, f.text.WithGroup(name), f.json.WithGroup(name)}
}
