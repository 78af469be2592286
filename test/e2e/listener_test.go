package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// testListener is a listener in this process.
type testListener struct {
	stop    func()
	broken  atomic.Bool
	handled atomic.Int64
}

func runListener(ts *testscript.TestScript, _ bool, args []string) {
	s, name := of(ts), args[0]
	h := s.listeners[name]
	if h == nil && args[1] != "ends" {
		var err error
		h, err = startListener(s.server.Bus, name, args[1] == "fails")
		ts.Check(err)
		s.listeners[name] = h
	}
	switch args[1] {
	case "handles", "fails":
		h.broken.Store(args[1] == "fails")
	case "ends":
		h.stop()
		delete(s.listeners, name)
	default:
		ts.Fatalf("listener NAME handles|fails|ends")
	}
}

func startListener(url, name string, broken bool) (*testListener, error) {
	quiet := slog.New(slog.DiscardHandler)
	b, err := bus.Open(context.Background(), bus.Options{URL: url, Name: name, Unmanaged: true, Logger: quiet})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h, done := &testListener{}, make(chan error, 1)
	h.broken.Store(broken)
	go func() {
		done <- listener.Run(ctx, b, quiet, listener.Spec{Name: name, Start: listener.StartAll(), Handler: h.handle})
	}()
	h.stop = func() {
		cancel()
		<-done
		_ = b.Close(context.Background())
	}
	return h, nil
}

func (h *testListener) handle(context.Context, *listener.Event) error {
	if h.broken.Load() {
		return listener.Permanent(errors.New("the kettle is cold"))
	}
	h.handled.Add(1)
	return nil
}

func awaitHandled(ts *testscript.TestScript, _ bool, args []string) {
	h := of(ts).listeners[args[1]]
	if h == nil {
		ts.Fatalf("there is no listener %s", args[1])
	}
	ts.Check(kit.Await(patience, func() error {
		if got := strconv.FormatInt(h.handled.Load(), 10); got != args[0] {
			return fmt.Errorf("%s has handled %s events, want %s", args[1], got, args[0])
		}
		return nil
	}))
}
