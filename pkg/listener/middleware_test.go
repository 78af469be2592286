package listener_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/listener"
)

func envelope() *listener.Event {
	return &listener.Event{
		Envelope: event.Envelope{
			ID: "e1", Event: event.StoreSaved, Store: "Books", UUID: "notes", Object: []byte(`{"title":"hush"}`),
			Ctx: event.Ctx{Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		},
		Attempt: 2,
	}
}

func returns(err error) listener.Handler {
	return func(context.Context, *listener.Event) error { return err }
}

func TestRecoverReturnsAPanicAsAnError(t *testing.T) {
	t.Parallel()
	err := listener.Recover()(func(context.Context, *listener.Event) error { panic("no title") })(t.Context(),
		envelope())
	if err == nil || !strings.Contains(err.Error(), "no title") ||
		!strings.Contains(err.Error(), "middleware_test.go") {
		t.Errorf("got %v, want the panic and where it was", err)
	}
	if listener.IsPermanent(err) {
		t.Error("it would not be tried again")
	}
	if err := listener.Recover()(returns(nil))(t.Context(), envelope()); err != nil {
		t.Error(err)
	}
}

func TestTimeoutCancelsTheContext(t *testing.T) {
	t.Parallel()
	err := listener.Timeout(time.Millisecond)(func(ctx context.Context, _ *listener.Event) error {
		<-ctx.Done()
		return ctx.Err()
	})(t.Context(), envelope())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestLogReportsTheOutcomeOfAnAttempt(t *testing.T) {
	t.Parallel()
	failure := errors.New("no title")
	for name, c := range map[string]struct {
		err         error
		level, want string
	}{
		"done":   {nil, "DEBUG", `msg="event handled" id=e1 event=Store.Saved store=Books uuid=notes attempt=2`},
		"failed": {failure, "WARN", `error="no title"`},
	} {
		t.Run(name, func(t *testing.T) {
			var text lines
			log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
			if err := listener.Log(log)(returns(c.err))(t.Context(), envelope()); !errors.Is(err, c.err) {
				t.Errorf("it returns %v, want %v", err, c.err)
			}
			got := text.String()
			if !strings.Contains(got, "level="+c.level) || !strings.Contains(got, c.want) ||
				strings.Contains(got, "hush") {
				t.Errorf("logged %s", got)
			}
		})
	}
}

func TestTheTraceIsPropagated(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	e := envelope()
	pass := listener.Trace()(func(ctx context.Context, _ *listener.Event) error {
		listener.Propagate(ctx, header)
		return nil
	})
	if err := pass(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got := header.Get("Traceparent"); got != e.Ctx.Trace {
		t.Errorf("the request carries %q, want %q", got, e.Ctx.Trace)
	}
	header, e.Ctx.Trace = http.Header{}, ""
	if err := pass(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if len(header) != 0 || listener.TraceParent(t.Context()) != "" {
		t.Errorf("without a trace the request carries %v", header)
	}
}
