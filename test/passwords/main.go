// Command passwords writes the filter of common passwords that package weak embeds, from a list that has the most
// common one first. `make passwords` runs it.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/bits-and-blooms/bloom/v3"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/weak"
)

const (
	entries        = 100_000
	falsePositives = 1e-6
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "passwords:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("expected the list and the filter to write, not %q", args)
	}
	list, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }()
	filter, err := filterOf(list, entries)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], filter, 0o644) //nolint:gosec // it is committed
}

// filterOf returns the filter of the first n passwords of a list that users could choose: those that are long enough,
// each once, compared as package weak does.
func filterOf(list io.Reader, n int) ([]byte, error) {
	filter := bloom.NewWithEstimates(uint(n), falsePositives) //nolint:gosec // positive
	added := map[string]bool{}
	for lines := bufio.NewScanner(list); len(added) < n; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("it has %d usable passwords, not %d", len(added), n)
		}
		if password := weak.Fold(lines.Text()); len(password) >= passwords.MinPassword && !added[password] {
			added[password] = true
			filter.AddString(password)
		}
	}
	var b bytes.Buffer
	_, err := filter.WriteTo(&b)
	return b.Bytes(), err
}
