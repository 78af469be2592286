// Package yamltext reads a configuration as YAML: one document of bounded size, in UTF-8. It accepts what YAML 1.2 and
// JSON allow and the library does not, and says in which line the text is wrong.
package yamltext

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
	MaxFile  = 1 << 20 // bytes
	maxNodes = 20_000
	maxDepth = 32
)

// Read reads at most one byte more than a configuration may have, so
// that a huge file is refused without being read completely.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}

// Fault is why a text is no configuration.
type Fault struct {
	Line    int // 0: the whole text
	Message string
}

// Parse returns the document's root, or nil when the text holds nothing or
// cannot be read as one bounded YAML document, which is then a fault.
func Parse(data []byte) (*yaml.Node, *Fault) {
	if len(data) > MaxFile {
		return nil, &Fault{0, fmt.Sprintf("is larger than %d KiB, the limit of a configuration", MaxFile>>10)}
	}
	if line, what := unreadable(data); what != "" {
		return nil, &Fault{line, what + "; expected text in UTF-8"}
	}
	data = toYAML11(data)
	source := bytes.NewReader(data)
	found, err := documents(source)
	switch {
	case err != nil:
		return nil, syntaxFault(err, data, len(data)-source.Len())
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, &Fault{found[1].Line, "a second YAML document starts here; expected one"}
	}
	root, budget := found[0].Content[0], maxNodes
	if what := checkBounds(root, 0, &budget); what != "" {
		return nil, &Fault{0, what}
	}
	return root, nil
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
