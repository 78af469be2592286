package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Limits of a configuration, far above any real one. They keep a wrong file (a disk
// image, an alias bomb) from exhausting memory.
const (
	maxFile  = 1 << 20
	maxNodes = 20_000
	maxDepth = 32
)

// readFile reads at most one byte more than a configuration may have, so
// that a huge file is refused without being read completely.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// parse returns the document's root, or nil when the file holds nothing or
// cannot be read as one bounded YAML document, which is then a problem.
func (d *document) parse(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.problemAt(0, "is larger than %d KiB, the limit of a configuration", maxFile>>10)
		return nil
	}
	if line, what := unreadable(data); what != "" {
		d.problemAt(line, "%s; expected text in UTF-8", what)
		return nil
	}
	data = toYAML11(data)
	source := bytes.NewReader(data)
	found, err := documents(source)
	switch {
	case err != nil:
		d.syntaxProblem(err, data, len(data)-source.Len())
		return nil
	case len(found) == 0:
		return nil
	case len(found) > 1:
		d.problemAt(found[1].Line, "a second YAML document starts here; expected one")
		return nil
	}
	root, budget := found[0].Content[0], maxNodes
	if what := checkBounds(root, 0, &budget); what != "" {
		d.problemAt(0, "%s", what)
		return nil
	}
	return root
}

// unreadable returns the first byte or character that YAML does not allow.
func unreadable(data []byte) (line int, what string) {
	line = 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return line, fmt.Sprintf("the byte 0x%02x is not UTF-8", data[i])
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85:
			return line, fmt.Sprintf("the control character %U is not allowed", r)
		}
		i += size
	}
	return 0, ""
}

// checkBounds follows aliases, so that a document it accepts can be walked in
// bounded time. It refuses an anchor that contains itself.
func checkBounds(n *yaml.Node, depth int, budget *int) string {
	*budget--
	switch {
	case *budget < 0:
		return fmt.Sprintf("has more than %d values; an alias counts each time it is used", maxNodes)
	case depth > maxDepth:
		return fmt.Sprintf("is nested deeper than %d levels", maxDepth)
	case n.Kind == yaml.AliasNode:
		return checkBounds(n.Alias, depth+1, budget)
	}
	for _, child := range n.Content {
		if what := checkBounds(child, depth+1, budget); what != "" {
			return what
		}
	}
	return ""
}
