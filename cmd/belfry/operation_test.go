package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app/command"
)

type countRequest struct {
	Store string `arg:"" json:"store" help:"Name of the store."`
	Least int    `json:"least,omitempty" help:"How many there have to be." placeholder:"N"`
}

type counted struct {
	Objects int  `json:"objects"`
	Served  bool `json:"served"`
	Few     bool `json:"few"`
}

// Clean reports whether there are enough.
func (c *counted) Clean() bool { return !c.Few }

// countObjects is an operation that only this test has.
var countObjects = command.Operation[countRequest, counted, int]{
	Name: "count objects", Help: "Count the objects of a store.",
	Run: func(ctx context.Context, at *command.Place, q countRequest, report func(int)) (*counted, error) {
		r := &counted{Served: at.Served}
		for _, err := range at.Set.Store(q.Store).All(ctx, 10) {
			if err != nil {
				return nil, err
			}
			r.Objects++
			report(r.Objects)
		}
		r.Few = r.Objects < q.Least
		return r, nil
	},
	Text: func(w io.Writer, q countRequest, r *counted) error {
		_, err := fmt.Fprintf(w, "%s: %d\n", q.Store, r.Objects)
		return err
	},
	Show: func(s command.Streams, _ countRequest) (func(int), func(error)) {
		return func(n int) { fmt.Fprintln(s.Err, "counted", n) }, func(error) { fmt.Fprintln(s.Err, "done") }
	},
}

// An operation that is added is a command with help, flags, output and exit code, and a control request of the process
// that serves, without another line.
func TestAnAddedOperationIsACommandAndAControlRequest(t *testing.T) {
	before := command.Operations
	command.Operations = slices.Concat(before, []command.Request{&countObjects})
	t.Cleanup(func() { command.Operations = before })

	belfry(t, 0, "count objects         Count the objects of a store.", "--help")
	help, _ := say(t, 0, "", "count", "objects", "--help")
	for _, want := range []string{"Usage: belfry count objects <store> [flags]", "<store>    Name of the store.", "--least=N", "How many there have to be.", "--json", "Report as JSON."} {
		if !strings.Contains(help, want) {
			t.Errorf("the help has no %q:\n%s", want, help)
		}
	}
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nlog: {level: error}\nstores: {Books: {expose: {}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"count", "objects", "Books", "-c", file}
	belfry(t, 2, "the data folder has no data yet", args...)
	belfry(t, 2, "<store>", "count", "objects", "-c", file)
	a := serve(t, file)
	for range 2 {
		if _, err := a.Set().Store("Books").Save(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, served := range []bool{true, false} {
		if out, errOut := say(t, 0, "", args...); out != "Books: 2\n" || errOut != "counted 1\ncounted 2\ndone\n" {
			t.Errorf("served %t: %q, %q", served, out, errOut)
		}
		var r counted
		out, _ := say(t, 1, "", append(args, "--least", "3", "--json")...)
		if err := json.Unmarshal([]byte(out), &r); err != nil || r != (counted{2, served, true}) {
			t.Errorf("served %t: %s, %v", served, out, err)
		}
		if served {
			if err := a.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
