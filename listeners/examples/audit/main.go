// Command audit keeps a log of everything that happens: a line of JSON for each
// event, on disk before the event is acknowledged, and chained to the line
// before it, so that a cut or a change shows.
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

// ackWait is how long what a killed process had in hand waits for the next one.
const ackWait = 5 * time.Second

func main() {
	name := flag.String("name", "audit", "name of the listener")
	path := flag.String("file", "audit.jsonl", "the log")
	check := flag.Bool("verify", false, "check the log, tell its head, and end")
	head := flag.String("head", "", "with -verify: a head of former times, which the log must hold")
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
	slog.Info("the log is whole", "file", *path, "lines", l.lines, "head", l.head)
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
		fmt.Fprintf(os.Stderr, "the log has %d lines, and none with that head: it was cut or made anew\n", s.lines)
		return 1
	}
	fmt.Printf("%d lines, head %s\n", s.lines, s.head)
	if s.half > 0 {
		fmt.Printf("and %d bytes of a line that is not finished\n", s.half)
	}
	return 0
}
