// Package early does what can't wait for the initialization of belfry's packages, which takes tens of milliseconds. Go
// initializes this one after a few of them, since it needs few packages itself.
//
// It receives SIGHUP from the beginning of `belfry serve` on: the signal would end the process meanwhile. And it delays
// the collector: what packages allocate then stays, and going through it several times took half of the time.
package early

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

var (
	// Ignored says that the process was started with SIGHUP ignored, as by nohup.
	Ignored = signal.Ignored(syscall.SIGHUP)

	// Hangups has a signal once SIGHUP has arrived; nil if the command is another one, which the signal ends.
	Hangups = receive()
)

// firstPercent is the GOGC by which the first collection begins at 16 MB, twice of what packages allocate. `belfry
// serve` then sets its own, and `belfry health`, which is run every few seconds, ends before.
const firstPercent = 400

func init() {
	if c := command(); (c == "serve" || c == "health") && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(firstPercent)
	}
}

// command is the command that runs; "" for none.
func command() string {
	if len(os.Args) < 2 {
		return ""
	}
	return os.Args[1]
}

func receive() chan os.Signal {
	if command() != "serve" {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals
}
