package store_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"belfry/internal/logctx"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

func TestLogRecordsCarryTheCallOfTheirContext(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(logctx.NewHandler(slog.NewTextHandler(&out, nil)))
	actor := "emma"
	outer := store.WithCall(t.Context(), store.Call{Ctx: event.Ctx{Request: "r1", Trace: "t1"}})
	ctx := store.WithCall(outer, store.Call{Actor: &actor, Ctx: event.Ctx{Request: "r2"}})
	log.InfoContext(ctx, "message")
	for _, want := range []string{"request=r2", "actor=emma", "trace=t1"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("want %s once in %s", want, out.String())
		}
	}
	if got := store.CallOf(ctx); got.Ctx.Request != "r2" || got.Actor != &actor {
		t.Errorf("the call of the context is %+v", got)
	}
}
