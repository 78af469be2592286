package logbuffer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/internal/logbuffer"
	"belfry/internal/logctx"
)

func all(*logbuffer.Line) bool { return true }

// logger returns a log that is kept, and its buffer.
func logger(level slog.Level) (*slog.Logger, *logbuffer.Buffer) {
	b := logbuffer.New()
	next := slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: level})
	return slog.New(logctx.NewHandler(logbuffer.NewHandler(next, b))), b
}

func TestLinesAreKeptWithTheirRequest(t *testing.T) {
	t.Parallel()
	log, b := logger(slog.LevelInfo)
	if logbuffer.Of(log) != b || logbuffer.Of(log.With("part", "x")) != b ||
		logbuffer.Of(slog.New(slog.DiscardHandler)) != nil {
		t.Error("the buffer of a log is not found")
	}
	ctx := logctx.With(t.Context(), slog.String("request", "r1"))
	log.DebugContext(ctx, "below the level")
	log.InfoContext(ctx, "one", "n", 7, "text", `a "b" c=d`, "error", errors.New("line\nbreak"), "took", time.Second,
		"empty", "", "at", time.Unix(0, 0))
	log.With("request", "r2", "part", "relay").WithGroup("g").
		Warn("two", "request", "inner", slog.Group("h", "k", uint64(1)))
	log.Error("three", slog.Attr{})

	found, more := b.Select(0, 0, 10, all)
	if len(found) != 3 || more {
		t.Fatalf("%+v, %t", found, more)
	}
	for i, want := range []string{
		`3 ERROR three  `,
		`2 WARN two r2 part=relay g.request=inner g.h.k=1`,
		`1 INFO one r1 n=7 text="a \"b\" c=d" error="line\nbreak" took=1s empty="" at=1970-01-01T00:00:00Z`,
	} {
		l := found[i]
		if got := fmt.Sprint(l.Sequence, " ", l.Level, " ", l.Message, " ", l.Request, " ", l.Attrs); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	of := func(l *logbuffer.Line) bool { return l.Request == "r1" }
	if found, _ := b.Select(0, 0, 10, of); len(found) != 1 || found[0].Message != "one" {
		t.Errorf("of the request: %+v", found)
	}
	if found, more := b.Select(0, 0, 1, all); len(found) != 1 || !more {
		t.Errorf("the first page: %+v, %t", found, more)
	}
	if found, more := b.Select(1, 0, 10, all); len(found) == 0 || found[len(found)-1].Sequence != 2 || more {
		t.Errorf("after 1: %+v, %t", found, more)
	}
	if found, more := b.Select(math.MaxUint64, 0, 10, all); len(found) != 0 || more {
		t.Errorf("after the newest: %+v, %t", found, more)
	}
	if found, more := b.Select(0, 2, 1, all); len(found) != 1 || found[0].Sequence != 1 || more {
		t.Errorf("the last page: %+v, %t", found, more)
	}
}

// A value is written as the log has it: its own text, which may hide a part, and bytes as text.
func TestValuesAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	log, b := logger(slog.LevelInfo)
	log.Info("seen", "password", hidden{"hunter2"}, "bytes", []byte("text"))
	found, _ := b.Select(0, 0, 1, all)
	if len(found) != 1 || found[0].Attrs != "password=[secret] bytes=text" {
		t.Errorf("%+v", found)
	}
	// slog writes such values too.
	log.Info("faulty", "at", (*time.Time)(nil), "n", 1)
	if found, _ := b.Select(0, 0, 1, all); len(found) != 1 || !strings.Contains(found[0].Attrs, "!PANIC") ||
		!strings.HasSuffix(found[0].Attrs, " n=1") {
		t.Errorf("%+v", found)
	}
}

type hidden struct{ text string }

func (hidden) MarshalText() ([]byte, error) { return []byte("[secret]"), nil }

func TestABufferIsBounded(t *testing.T) {
	t.Parallel()
	log, b := logger(slog.LevelInfo)
	if s := b.Stats(); s.Lines != 0 || !s.Oldest.IsZero() {
		t.Errorf("an empty one has %+v", s)
	}
	check := func(what string) {
		t.Helper()
		s := b.Stats()
		if s.Bytes > logbuffer.Most || s.Oldest.IsZero() {
			t.Errorf("%s: %+v", what, s)
		}
		if found, more := b.Select(0, 0, 1<<20, all); len(found) != s.Lines || more {
			t.Errorf("%s: %d lines of %d are found", what, len(found), s.Lines)
		}
	}
	for i := range 10_000 {
		log.Info("short", "i", i)
	}
	check("short lines")
	if s := b.Stats(); s.Lines != 4000 || s.Dropped != 6000 {
		t.Errorf("%+v", s)
	}
	for range 1000 {
		log.Info(strings.Repeat("m", 2000), "ä", strings.Repeat("ä", 3000), "request", strings.Repeat("r", 1000))
	}
	check("long lines")
	found, _ := b.Select(0, 0, 1, all)
	if l := found[0]; !l.Cut || len(l.Message) != 1<<10 || len(l.Attrs) > 4<<10 || !strings.HasSuffix(l.Attrs, "ä") ||
		len(l.Request) != 200 {
		t.Errorf("%d, %d, %d", len(l.Message), len(l.Attrs), len(l.Request))
	}
	for range 10_000 {
		log.Info("short again")
	}
	check("short lines again")
}

func TestABufferIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	log, b := logger(slog.LevelInfo)
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for range 2000 {
				log.With("i", i).Info("line")
				b.Select(0, 0, 5, all)
			}
		})
	}
	wait.Wait()
	if s := b.Stats(); s.Lines != 4000 || s.Dropped != 4000 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkALine measures what keeping a line adds to writing it.
func BenchmarkALine(b *testing.B) {
	plain := slog.NewTextHandler(io.Discard, nil)
	for name, h := range map[string]slog.Handler{"written": plain,
		"written and kept": logbuffer.NewHandler(plain, logbuffer.New())} {
		log := slog.New(logctx.NewHandler(h))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(context.Background(), slog.LevelInfo, "request",
					slog.String("request", "0123456789abcdef"), slog.String("method", "GET"), slog.String("path", "/recipes/waffles"), slog.Int("status", 200),
					slog.Int64("bytes", 1234), slog.Duration("took", time.Millisecond), slog.String("address", "::1"))
			}
		})
		b.Run(name+", below the level", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				log.LogAttrs(context.Background(), slog.LevelDebug, "request",
					slog.String("request", "0123456789abcdef"))
			}
		})
	}
}
