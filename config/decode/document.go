package decode

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/config/value"
	"belfry/config/yamltext"
)

// Document is a file that was read: the positions of its keys, the keys whose
// values are redacted, and the problems found so far.
type Document struct {
	file      string
	env       Lookup
	root      *yaml.Node
	into      any // what it was read into
	positions map[string]position
	secret    map[string]bool // paths whose values came from the environment
	problems  Problems
	paths     []func() Path // files and folders that keys name, and files of ${file:/path}
	// digests of the values that have the content of a file, by the paths of their keys
	contents map[string][sha256.Size]byte
	loose    map[string]any // valid values of keys without a field, by their paths
	// paths of keys whose values are invalid; of an item of a list, also that of the list
	invalid   map[string]bool
	variables map[string]string // in the defaults of paths
	later     []func()          // set defaults that depend on other keys
}

type position struct{ line, column int }

// Path is a file or a folder that a configuration names, by a key or by the default of one.
type Path struct {
	Key  string
	Name string // absolute; links are not followed
	Use  value.PathUse
}

// Read reads a file into a struct. Problems name the file, and relative paths are relative to its folder. Without YAML
// there is an error. All other problems are kept until Err is called, so that rules can add theirs.
func Read[T any](file string, data []byte, env Lookup) (*T, *Document, error) {
	d := &Document{
		file: file, env: env, positions: map[string]position{}, secret: map[string]bool{},
		contents: map[string][sha256.Size]byte{}, loose: map[string]any{}, invalid: map[string]bool{},
	}
	root, fault := yamltext.Parse(data)
	if fault != nil {
		return nil, nil, Problems{{File: file, Line: fault.Line, Message: fault.Message}}
	}
	into := new(T)
	d.root, d.into = root, into
	newSection(d, "", root).Fill(into, "")
	return into, d, nil
}

// Absent returns an entry of a map at a path that is not in the file: all of it are defaults.
func Absent[T any](d *Document, path, name string) *T {
	s := newSection(d, Join(path, name), nil)
	s.name = name
	into := new(T)
	s.Fill(into, "")
	return into
}

// Derive sets the defaults that depend on other keys, those that depend on variables by themselves. It can be called
// again.
func (d *Document) Derive(variables map[string]string) {
	d.variables = variables
	for _, set := range d.later {
		set()
	}
}

// File is the file that was read.
func (d *Document) File() string { return d.file }

// Problem reports a problem with a key, by its path.
func (d *Document) Problem(path, format string, args ...any) {
	d.problems = append(d.problems, d.NewProblem(path, format, args...))
}

// refuse reports a problem with a value, which is invalid then.
func (d *Document) refuse(path, format string, args ...any) {
	d.Problem(path, format, args...)
	mark(d.invalid, path)
}

// problemIn reports a problem at one of several nodes with the same path.
func (d *Document) problemIn(path string, n *yaml.Node, format string, args ...any) {
	d.problems = append(d.problems, Problem{d.file, n.Line, n.Column, path, fmt.Sprintf(format, args...)})
}

// NewProblem makes a problem at the position of a key or, when the key is not in
// the file, of the nearest enclosing key.
func (d *Document) NewProblem(path, format string, args ...any) Problem {
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

// Err returns the problems in the order of the file, or nil.
func (d *Document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	d.problems.Sort()
	return d.problems
}

// Paths returns the files and folders that the configuration names, the file itself included, which has no key.
func (d *Document) Paths() []Path {
	all := []Path{{Name: d.file, Use: value.ReadFile}}
	if absolute, err := filepath.Abs(d.file); err == nil {
		all[0].Name = absolute
	}
	for _, path := range d.paths {
		if p := path(); p.Name != "" {
			all = append(all, p)
		}
	}
	return all
}

// IsSet reports whether a key is in the file.
func (d *Document) IsSet(path string) bool {
	_, ok := d.positions[path]
	return ok
}

// Valid reports whether a key is in the file and has a value that it can have.
func (d *Document) Valid(path string) bool { return d.IsSet(path) && !d.invalid[path] }

// scalar reads a single value and substitutes environment variables.
func (d *Document) scalar(path string, n *yaml.Node) (v text, ok bool) {
	n = yamltext.Dealias(n)
	switch {
	case yamltext.IsNull(n):
		d.refuse(path, "has no value; set one, or remove the key to use its default")
		return text{}, false
	case n.Kind != yaml.ScalarNode, n.Style&yaml.TaggedStyle != 0:
		d.refuse(path, "expected a single value, not %s", describe(n))
		return text{}, false
	}
	secret, fromFile := d.isSecret(path), false
	got, replaced, err := expand(n.Value, func(reference string) (string, error) {
		if file, isFile := strings.CutPrefix(reference, fileReference); isFile {
			fromFile = true
			d.paths = append(d.paths, func() Path { return Path{path, file, value.ReadFile} })
		}
		return lookup(reference, d.env)
	})
	if err != nil {
		d.refuse(path, "%v", err)
		return text{}, false
	}
	if replaced {
		mark(d.secret, path)
	}
	if fromFile {
		d.contents[path] = sha256.Sum256([]byte(got))
	}
	if endsWithBreak(got, secret, replaced) {
		d.refuse(path, "ends with a line break; remove it where the value comes from (${file:/path} leaves out one "+
			"at the end of the file)")
		return text{}, false
	}
	return text{path, got}, true
}

// decode sets a field to the value of a text, and reports a problem if it is invalid.
func (d *Document) decode(k *Key, v text, into reflect.Value) bool {
	got, ok := d.convert(k, v)
	if ok {
		into.Set(reflect.ValueOf(got).Convert(into.Type()))
	}
	return ok
}

// convert returns the value of a text. The error of a parser says what is expected; the text is quoted after it unless
// it is secret.
func (d *Document) convert(k *Key, v text) (any, bool) {
	got, err := k.Format.Parse(filepath.Dir(d.file), v.value)
	if err != nil {
		d.refuse(v.path, "%v%s", err, d.butGot(v.path, v.value))
	}
	return got, err == nil
}

// mark marks a key; for an item of a list, the list as well.
func mark(marked map[string]bool, path string) {
	marked[path] = true
	if strings.HasSuffix(path, "]") {
		marked[path[:strings.LastIndexByte(path, '[')]] = true
	}
}

// butGot quotes the wrong value for the end of a message, unless it is secret. Under any
// key, a URL with a user may contain a password.
func (d *Document) butGot(path, text string) string {
	if d.isSecret(path) || strings.Contains(text, "://") && strings.Contains(text, "@") {
		return ""
	}
	return ", not " + quote(text)
}

// Display returns a value for a message, or "this" if it is secret.
func (d *Document) Display(path, text string) string {
	if d.isSecret(path) {
		return "this"
	}
	return text
}

// isSecret reports whether the value of a key must not be shown.
func (d *Document) isSecret(path string) bool {
	return d.secret[path] || SecretLike(path[strings.LastIndexByte(path, '.')+1:])
}
