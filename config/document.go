package config

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is a file that is being read: the positions of its keys, the keys whose
// values are redacted, and the problems found so far.
type document struct {
	file      string
	env       Lookup
	root      *yaml.Node // of the file, once it was read
	positions map[string]position
	secret    map[string]bool // paths whose values came from the environment
	problems  Problems
	paths     []func() Path                // what readPath has read, and files of ${file:/path}
	contents  map[string][sha256.Size]byte // digests of the values that have the content of a file, by the paths of their keys
	recorder  *recorder                    // not nil while the schema of the configuration is made: then nothing is read
}

type position struct{ line, column int }

func newDocument(file string, env Lookup) *document {
	return &document{file: file, env: env, positions: map[string]position{}, secret: map[string]bool{}, contents: map[string][sha256.Size]byte{}}
}

func (d *document) problem(path, format string, args ...any) {
	d.problems = append(d.problems, d.newProblem(path, format, args...))
}

// problemAt reports a problem of a line (0 for the whole file).
func (d *document) problemAt(line int, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: line, Message: fmt.Sprintf(format, args...)})
}

// problemIn reports a problem at one of several nodes with the same path.
func (d *document) problemIn(path string, n *yaml.Node, format string, args ...any) {
	d.problems = append(d.problems, Problem{d.file, n.Line, n.Column, path, fmt.Sprintf(format, args...)})
}

// newProblem makes a problem at the position of a key or, when the key is not in
// the file, of the nearest enclosing key.
func (d *document) newProblem(path, format string, args ...any) Problem {
	message := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n", "; ")
	p := Problem{File: d.file, Line: 1, Column: 1, Key: path, Message: message}
	for around := path; around != ""; around = around[:max(strings.LastIndexAny(around, ".["), 0)] {
		if at, ok := d.positions[around]; ok {
			p.Line, p.Column = at.line, at.column
			break
		}
	}
	return p
}

// failure returns the problems in the order of the file, nil when there are none.
func (d *document) failure() error {
	if len(d.problems) == 0 {
		return nil
	}
	d.problems.Sort()
	return d.problems
}

// scalar reads a single value and substitutes environment variables.
func (d *document) scalar(path string, n *yaml.Node) (v scalar, ok bool) {
	n = dealias(n)
	switch {
	case isNull(n):
		d.problem(path, "has no value; set one, or remove the key to use its default")
		return scalar{}, false
	case n.Kind != yaml.ScalarNode, n.Style&yaml.TaggedStyle != 0:
		d.problem(path, "expected a single value, not %s", describe(n))
		return scalar{}, false
	}
	secret, fromFile := d.isSecret(path), false
	text, replaced, err := expand(n.Value, func(reference string) (string, error) {
		if file, isFile := strings.CutPrefix(reference, fileReference); isFile {
			fromFile = true
			d.paths = append(d.paths, func() Path { return Path{path, file, ReadFile} })
		}
		return lookup(reference, d.env)
	})
	if err != nil {
		d.problem(path, "%v", err)
		return scalar{}, false
	}
	if replaced {
		d.markSecret(path)
	}
	if fromFile {
		d.contents[path] = sha256.Sum256([]byte(text))
	}
	if endsWithBreak(text, secret, replaced) {
		d.problem(path, "ends with a line break; remove it where the value comes from (${file:/path} leaves out one at the end of the file)")
		return scalar{}, false
	}
	return scalar{path, text}, true
}

// isSet reports whether a key is in the file.
func (d *document) isSet(path string) bool {
	_, ok := d.positions[path]
	return ok
}

// markSecret redacts the value of a key in messages; for an item of a list, the
// whole list.
func (d *document) markSecret(path string) {
	d.secret[path] = true
	if strings.HasSuffix(path, "]") {
		d.secret[path[:strings.LastIndexByte(path, '[')]] = true
	}
}

// butGot quotes the wrong value after what is expected, unless it is secret. A URL
// with a user may contain a password, whatever its key.
func (d *document) butGot(path, text string) string {
	if d.isSecret(path) || strings.Contains(text, "://") && strings.Contains(text, "@") {
		return ""
	}
	return ", not " + quote(text)
}

// display returns a value for a message, or "this" if it is secret.
func (d *document) display(path, text string) string {
	if d.isSecret(path) {
		return "this"
	}
	return text
}

// isSecret reports whether the value of a key must not be shown.
func (d *document) isSecret(path string) bool {
	return d.secret[path] || secretLike(path[strings.LastIndexByte(path, '.')+1:])
}
