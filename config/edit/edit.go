// Package edit changes keys of a configuration in its text. Everything else stays as it was written: comments, the
// order of keys, blank lines, and how values are written.
//
// A change replaces lines, and the result is read again: it must have exactly the values that the text had before and
// the change. Where that can't be reached, as in a value that is an alias, the change is refused. So any text stays a
// value, with all characters that it has.
package edit

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/config/decode"
	"belfry/config/yamltext"
)

// Change sets a key to a value, or removes it.
type Change struct {
	Path  []string // the keys from the root
	Value Value    // nil removes the key
}

// Apply returns the text of a configuration with changes, which are made one after another.
func Apply(data []byte, changes ...Change) ([]byte, error) {
	for _, c := range changes {
		changed, err := apply(data, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Key(c.Path), err)
		}
		data = changed
	}
	return data, nil
}

// Key is the path of a key in one word, as messages name it.
func Key(path []string) (key string) {
	for _, name := range path {
		key = decode.Join(key, name)
	}
	return key
}

func apply(data []byte, c Change) ([]byte, error) {
	if len(c.Path) == 0 {
		return nil, errByHand("the whole file")
	}
	root, before, err := read(data)
	if err != nil {
		return nil, err
	}
	for depth := 1; depth < len(c.Path); depth++ {
		switch v, _ := before.At(c.Path[:depth]...); v.(type) {
		case nil, null, Map:
		default:
			return nil, fmt.Errorf("%s has a single value or a list, not keys; change it as a whole",
				Key(c.Path[:depth]))
		}
	}
	want := before.With(c.Path, c.Value)
	if same(before, want) {
		return data, nil
	}
	var changed []byte
	if yamltext.IsJSON(data) {
		changed, err = encodeJSON(data, want)
	} else {
		changed, err = splice(data, root, c)
	}
	if err != nil {
		return nil, err
	}
	if after, err := Read(changed); err != nil || !same(after, want) {
		return nil, errByHand("the text around it")
	}
	return changed, nil
}

// Read returns the values of a configuration as its text has them, references to the environment included.
func Read(data []byte) (Map, error) {
	_, m, err := read(data)
	return m, err
}

// read is Read, and returns the root of the document as well, nil for none.
func read(data []byte) (*yaml.Node, Map, error) {
	root, fault := yamltext.Parse(data)
	switch {
	case fault != nil && fault.Line > 0:
		return nil, nil, fmt.Errorf("line %d: %s", fault.Line, fault.Message)
	case fault != nil:
		return nil, nil, fmt.Errorf("the file %s", fault.Message)
	case yamltext.IsNull(root):
		return root, Map{}, nil
	}
	value, err := valueOf(root)
	if err != nil {
		return nil, nil, err
	}
	m, ok := value.(Map)
	if !ok {
		return nil, nil, fmt.Errorf("line %d: expected keys with values", root.Line)
	}
	return root, m, nil
}

// errByHand says that a program can't change a part of the text.
func errByHand(what string) error {
	return fmt.Errorf("%s can't be changed by a program; edit the file", what)
}

// splice makes a change in a text that is YAML.
func splice(data []byte, root *yaml.Node, c Change) ([]byte, error) {
	if hasOtherBreaks(data) {
		return nil, errByHand("a file with U+0085, U+2028, U+2029 or a carriage return alone, which end lines in YAML,")
	}
	t := newText(data)
	if yamltext.IsNull(root) {
		at := t.documentEnd(0)
		return t.replaced(at, at, encode(c.Path[0], nest(c.Path[1:], c.Value), 1)), nil
	}
	return t.change(block{root, t.documentEnd(root.Line)}, c, 0)
}

// nest returns a value within maps, one for each key.
func nest(keys []string, v Value) Value {
	for _, key := range slices.Backward(keys) {
		v = Map{{key, v}}
	}
	return v
}

// block is a mapping of which each entry begins a line. It ends before the line limit.
type block struct {
	node  *yaml.Node
	limit int
}

// change makes a change within a block, which has the keys of the change from a depth on.
func (t *text) change(b block, c Change, depth int) ([]byte, error) {
	if b.node.Kind != yaml.MappingNode || b.node.Style&yaml.FlowStyle != 0 {
		return nil, errByHand("a file that is one value in braces")
	}
	rest := c.Path[depth+1:]
	e, found := t.find(b, c.Path[depth])
	switch {
	case !found:
		return t.insert(b, c, depth)
	case !t.beginsLine(e.key):
		return nil, errByHand("an entry that does not begin a line")
	case len(rest) == 0 && c.Value == nil:
		return t.remove(e, depth), nil
	case len(rest) == 0:
		return t.set(e, c)
	case e.isBlock():
		return t.change(block{e.value, e.limit}, c, depth+1)
	case e.value.Kind == yaml.AliasNode:
		return nil, errByHand("what an alias stands for")
	default:
		old, err := valueOf(e.value)
		if err != nil {
			return nil, err
		}
		m, _ := old.(Map) // none of a key without a value
		return t.replaceValue(e, depth+1, m.With(rest, c.Value))
	}
}

// set replaces the value of an entry. Of a block only what differs is touched.
func (t *text) set(e entry, c Change) ([]byte, error) {
	old, err := valueOf(e.value)
	if err != nil {
		return nil, err
	}
	if wanted, ok := c.Value.(Map); ok && e.isBlock() {
		return Apply([]byte(strings.Join(t.lines, "")), differences(c.Path, old.(Map), wanted)...)
	}
	if wanted, ok := c.Value.([]Value); ok && len(wanted) > 0 && e.isBlockList() {
		return t.setList(e, old.([]Value), wanted), nil
	}
	return t.replaceValue(e, len(c.Path), c.Value)
}

// differences are the changes that make a map another one.
func differences(path []string, old, wanted Map) (changes []Change) {
	within := func(key string) []string { return append(slices.Clone(path), key) }
	for _, e := range wanted {
		if before, ok := old.Get(e.Key); !ok || !same(before, e.Value) {
			changes = append(changes, Change{within(e.Key), e.Value})
		}
	}
	for _, e := range old {
		if _, ok := wanted.Get(e.Key); !ok {
			changes = append(changes, Change{within(e.Key), nil})
		}
	}
	return changes
}
