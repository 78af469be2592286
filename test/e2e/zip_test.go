package e2e

import (
	"archive/zip"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// unzip prints the names of the entries of an archive in a line, and then their contents. It fails for one whose
// contents do not have their checksums.
func unzip(ts *testscript.TestScript, _ bool, args []string) {
	archive, err := zip.OpenReader(ts.MkAbs(args[0]))
	ts.Check(err)
	defer func() { _ = archive.Close() }()
	var names []string
	var contents strings.Builder
	for _, entry := range archive.File {
		content, err := entry.Open()
		ts.Check(err)
		_, err = io.Copy(&contents, content)
		ts.Check(err)
		ts.Check(content.Close())
		names = append(names, entry.Name)
		contents.WriteByte('\n')
	}
	_, err = fmt.Fprintf(ts.Stdout(), "%s\n%s", strings.Join(names, " "), contents.String())
	ts.Check(err)
}
