// Package early receives SIGHUP from the beginning of `belfry serve` on. The packages of belfry take tens of
// milliseconds to initialize, in which the signal would end the process. Go initializes this one after a few of them,
// since it needs few packages itself.
package early

import (
	"os"
	"os/signal"
	"syscall"
)

var (
	// Ignored says that the process was started with SIGHUP ignored, as by nohup.
	Ignored = signal.Ignored(syscall.SIGHUP)

	// Hangups has a signal once SIGHUP has arrived; nil if the command is another one, which the signal ends.
	Hangups = receive()
)

func receive() chan os.Signal {
	if len(os.Args) < 2 || os.Args[1] != "serve" {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals
}
