// Command audit writes every event to a log file: one line of JSON for each, on
// disk before the event is acknowledged, and chained to the line before it by a
// hash, so that changes are detected.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"belfry/pkg/listener"
)

// ackWait is the time after which the events in flight of a killed process are
// redelivered.
const ackWait = 5 * time.Second

func main() {
	name := flag.String("name", "audit", "name of the listener")
	path := flag.String("file", "audit.jsonl", "the log")
	check := flag.Bool("verify", false, "check the log, print its head, and exit")
	head := flag.String("head", "", "with -verify: an earlier head, which the log must have")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q: there are flags alone\n", flag.Arg(0))
		os.Exit(2)
	}
	if *check {
		os.Exit(verify(*path, *head))
	}
	l, err := open(*path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	slog.Info("the log is intact", "file", *path, "lines", l.lines, "head", l.head)
	listener.Main(listener.Spec{
		Name:    *name,
		Start:   listener.StartAll(),
		AckWait: ackWait,
		Batch:   func(_ context.Context, events []*listener.Event) []error { return l.add(events) },
	})
}

// verify checks a log and returns the exit code.
func verify(path, head string) int {
	f, err := os.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = f.Close() }()
	found := head == ""
	s, err := scan(f, func(on line) { found = found || on.Hash == head })
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case !found:
		fmt.Fprintf(os.Stderr, "the log has %d lines, and none with that head: it was truncated or replaced\n", s.lines)
		return 1
	}
	fmt.Printf("%d lines, head %s\n", s.lines, s.head)
	if s.half > 0 {
		fmt.Printf("and %d bytes of a line that is not finished\n", s.half)
	}
	return 0
}
