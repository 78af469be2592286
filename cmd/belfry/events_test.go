package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestErasingNothingIsNoSuccessByMistake: a command that finds nothing says so, and what was mistyped is an error, or
// somebody would take the events for erased.
func TestErasingNothingIsNoSuccessByMistake(t *testing.T) {
	b, file := served(t, 1)
	text := "data: .\nbus: {listen: \"" + strings.TrimPrefix(b.ClientURL(), "nats://") + "\"}\nstores:\n  Books: {}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		store, uuid string
		code        int
		says        string
	}{
		{"Books", "b1", 0, "the log has no events of Books b1"},
		{"Sessions", "b1", 0, "the log has no events of Sessions b1"},
		{"Book", "b1", 2, `no store "Book" is configured; there are Books`},
		{"Books", "../b1", 2, `--uuid "../b1": not a uuid`},
		{"Books", "*", 2, `--uuid "*": not a uuid`},
	} {
		for _, flags := range [][]string{{"--yes"}, {"--dry-run"}} {
			var out, errOut bytes.Buffer
			args := append([]string{"events", "erase", "-c", file, "--store", c.store, "--uuid", c.uuid}, flags...)
			code := run(t.Context(), args, streams{nil, &out, &errOut})
			if all := out.String() + errOut.String(); code != c.code || !strings.Contains(all, c.says) ||
				strings.Contains(all, "0 events") {
				t.Errorf("%v ended with %d:\n%s", args, code, all)
			}
		}
	}
}
