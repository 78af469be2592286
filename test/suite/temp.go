package main

import (
	"fmt"
	"io"
	"os"
)

// room is how much has to be free in memory for temporary files. The tests take a fifth of it at once.
const room = 4 << 30

// useMemory lets tests make their temporary files in a folder in memory, if there is one with enough room, until remove
// is called. They make, sync and remove many small files, which takes a tenth of their CPU time on a disk. TMPDIR takes
// precedence.
func useMemory(out io.Writer) (remove func(), err error) {
	remove = func() {}
	if os.Getenv("TMPDIR") != "" {
		return remove, nil
	}
	within, free := inMemory()
	if free < room {
		return remove, nil
	}
	folder, err := os.MkdirTemp(within, "belfry-suite-")
	if err != nil {
		return remove, nil //nolint:nilerr // the folder is not for this user
	}
	remove = func() {
		_ = os.RemoveAll(folder)
		_ = os.Unsetenv("TMPDIR")
	}
	if err := os.Chmod(folder, 0o755); err != nil { // PostgreSQL runs as another user
		remove()
		return remove, err
	}
	_, _ = fmt.Fprintf(out, "The tests make their temporary files in memory, in %s: TMPDIR names another folder\n",
		folder)
	return remove, os.Setenv("TMPDIR", folder)
}
