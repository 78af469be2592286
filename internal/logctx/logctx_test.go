package logctx_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"belfry/internal/logctx"
)

func ExampleWith() {
	handler := slog.NewTextHandler(os.Stdout,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
	log := slog.New(logctx.NewHandler(handler))

	ctx := logctx.With(context.Background(), slog.String("request", "4f1c"))
	log.WarnContext(ctx, "the disk is full", "free", 0)
	// Output: level=WARN msg="the disk is full" free=0 request=4f1c
}

func TestInnerAttributesReplaceOuterOnes(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logctx.NewHandler(logctx.NewHandler(slog.NewTextHandler(&out, nil)))).With("component", "store")
	outer := logctx.With(t.Context(), slog.String("request", "outer"), slog.String("trace", "t"),
		slog.String("record", "ctx"))
	log.InfoContext(logctx.With(outer, slog.String("request", "inner")), "message", "record", "own")
	line := out.String()
	for _, want := range []string{"component=store", "request=inner", "trace=t", "record=own"} {
		if strings.Count(line, want) != 1 {
			t.Errorf("want %s once in %s", want, line)
		}
	}
	for _, not := range []string{"outer", "record=ctx"} {
		if strings.Contains(line, not) {
			t.Errorf("%s is replaced, and yet in %s", not, line)
		}
	}
	out.Reset()
	log.Info("without a context")
	if strings.Contains(out.String(), "request=") {
		t.Errorf("an attribute of nowhere: %s", out.String())
	}
}
