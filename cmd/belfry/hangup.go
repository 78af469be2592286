package main

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// errHangup is the reason of a stop.
var errHangup = errors.New("the terminal was closed")

// hangups receives SIGHUP, which means two things: an operator, or a service manager, has belfry read its
// configuration again; or the terminal in which belfry runs was closed.
type hangups struct {
	signals   chan os.Signal
	terminals []*os.File // those of the process when it began
}

// receiveHangups begins to receive. A process that was started with SIGHUP ignored, as by nohup, outlives its terminal.
func receiveHangups() *hangups {
	h := &hangups{signals: make(chan os.Signal, 1)}
	if !signal.Ignored(syscall.SIGHUP) {
		h.terminals = slices.DeleteFunc([]*os.File{os.Stdin, os.Stdout, os.Stderr}, func(f *os.File) bool { return !isTerminal(f) })
	}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

func (h *hangups) stop() { signal.Stop(h.signals) }

// terminalClosed reports whether belfry ran in a terminal that is not there any more.
func (h *hangups) terminalClosed() bool {
	return slices.ContainsFunc(h.terminals, func(f *os.File) bool { return !isTerminal(f) })
}
