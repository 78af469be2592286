package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"belfry/cmd/belfry/early"
)

// errHangup is the reason of a stop.
var errHangup = errors.New("the terminal was closed")

// hangups receives SIGHUP, which means two things: an operator, or a service manager, has belfry read its
// configuration again; or the terminal in which belfry runs was closed.
type hangups struct {
	signals   chan os.Signal
	terminals []*os.File    // those of the process when it began
	reloads   chan struct{} // has an element while a reload is requested
	following sync.WaitGroup
	stop      func()
}

// receiveHangups begins to receive, until stop is called. The context that it returns ends when the terminal is closed,
// also while belfry still starts. A process that was started with SIGHUP ignored, as by nohup, outlives its terminal.
func receiveHangups(ctx context.Context) (context.Context, *hangups) {
	h := &hangups{}
	if !early.Ignored {
		h.terminals = slices.DeleteFunc([]*os.File{os.Stdin, os.Stdout, os.Stderr},
			func(f *os.File) bool { return !isTerminal(f) })
	}
	ctx = h.follow(ctx)
	signal.Notify(h.signals, syscall.SIGHUP)
	return ctx, h
}

// follow distinguishes the meanings of signals.
func (h *hangups) follow(ctx context.Context) context.Context {
	h.signals, h.reloads = early.Hangups, make(chan struct{}, 1)
	if h.signals == nil { // in a test, which serves several times
		h.signals = make(chan os.Signal, 1)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	h.following.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.signals:
			}
			if h.terminalClosed() {
				cancel(errHangup)
				return
			}
			select {
			case h.reloads <- struct{}{}:
			default: // the one that is requested will read what there is now
			}
		}
	})
	h.stop = func() {
		signal.Stop(h.signals)
		cancel(nil)
		h.following.Wait()
	}
	return ctx
}

// terminalClosed reports whether belfry ran in a terminal that no longer exists.
func (h *hangups) terminalClosed() bool {
	return slices.ContainsFunc(h.terminals, func(f *os.File) bool { return !isTerminal(f) })
}
