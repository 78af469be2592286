package edit

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	step     = 2  // spaces of a level
	flowFrom = 3  // keys above it that a map needs to be written in one line
	flowSize = 90 // characters that a value in one line may have
)

// indented puts spaces before lines.
func indented(column int, lines []string) []string {
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", column) + line
		}
	}
	return lines
}

// encode returns the lines of a key with a value that has so many keys above it.
func encode(key string, v Value, depth int) []string {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(step)
	entry := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{node(key, 0, false), node(v, depth, true)}}
	_ = e.Encode(entry) // of plain values, and to a writer that can't fail
	_ = e.Close()
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// node returns a value as it is written: what is short in one line.
func node(v Value, depth int, open bool) *yaml.Node {
	switch v := v.(type) {
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		switch lines := strings.TrimSuffix(v, "\n"); {
		case strings.ContainsAny(v, otherBreaks):
			n.Style = yaml.DoubleQuotedStyle // which escapes them
		case open && strings.Contains(lines, "\n") && strings.TrimSpace(lines) == lines:
			n.Style = yaml.LiteralStyle
		case strings.Contains(v, "\n"):
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	case Plain:
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: string(v)}
		if strings.ContainsAny(string(v), otherBreaks) {
			n.Style = yaml.DoubleQuotedStyle
		}
		if n.ShortTag() == "!!null" {
			n.Tag = "!!str"
		}
		return n
	case null:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	case []Value:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if !open || fits(v) {
			n.Style, open = yaml.FlowStyle, false
		}
		for _, item := range v {
			n.Content = append(n.Content, node(item, depth+1, open))
		}
		return n
	default:
		m, _ := v.(Map)
		n := &yaml.Node{Kind: yaml.MappingNode}
		if !open || len(m) == 0 || depth >= flowFrom && fits(v) {
			n.Style, open = yaml.FlowStyle, false
		}
		for _, e := range m {
			n.Content = append(n.Content, node(e.Key, 0, false), node(e.Value, depth+1, open))
		}
		return n
	}
}

// fits reports whether a value of single values and lists is short enough for one line.
func fits(v Value) bool {
	size := 0
	var add func(v Value, within bool) bool
	add = func(v Value, within bool) bool {
		switch v := v.(type) {
		case []Value:
			return !slices.ContainsFunc(v, func(item Value) bool { return !add(item, true) })
		case Map:
			return !within && !slices.ContainsFunc(v, func(e Member) bool {
				size += len(e.Key) + len(": ")
				return !add(e.Value, true)
			})
		default:
			text, _ := Text(v)
			size += len(text) + len(", ")
			return !strings.Contains(text, "\n")
		}
	}
	return add(v, false) && size <= flowSize
}

// insert adds an entry at the end of a block.
func (t *text) insert(b block, c Change, depth int) ([]byte, error) {
	keys := b.node.Content
	last := t.at(b, len(keys)-2)
	if !t.beginsLine(last.key) {
		return nil, errByHand("the block that has it")
	}
	column := last.key.Column - 1
	at := t.comments(t.end(last), b.limit, column)
	lines := encode(c.Path[depth], nest(c.Path[depth+1:], c.Value), depth+1)
	indented(column, lines)
	if t.isSpaced(b) {
		lines = append([]string{""}, lines...)
	}
	return t.replaced(at, at, lines), nil
}

// isSpaced reports whether blank lines are between the entries of a block.
func (t *text) isSpaced(b block) bool {
	keys := b.node.Content
	for i := 2; i < len(keys); i += 2 {
		line := keys[i].Line - 1
		if head := t.heads(line, 0); head == 0 || !t.isBlank(head-1) {
			return false
		}
	}
	return len(keys) > 2
}

// remove removes an entry with the comments above it, but for those at the beginning of the file. A block that has no
// other becomes an empty map: without any, the key above would have no value, or its default.
func (t *text) remove(e entry, depth int) []byte {
	column := e.key.Column - 1
	from, to := e.start, t.comments(t.end(e), e.limit, column+1)
	if depth > 0 || !e.first {
		from = t.heads(from, 0)
	}
	if e.alone {
		return t.replaced(from, to, indented(column, []string{"{}"}))
	}
	if (e.first || t.isBlank(from-1)) && to < len(t.lines) && t.isBlank(to) {
		to++
	}
	return t.replaced(from, to, nil)
}

// replaceValue replaces the value of an entry, which has so many keys above it. Comments within the value move above
// the key: they have no place in the new one.
func (t *text) replaceValue(e entry, depth int, v Value) ([]byte, error) {
	head, comment, ok := t.keyOf(e)
	if !ok {
		return nil, errByHand("the value")
	}
	column := e.key.Column - 1
	end := t.comments(t.end(e), e.limit, column+1)
	if isFlow := e.value.Style&yaml.FlowStyle != 0; isFlow && len(e.value.Content) > 0 && end == e.start+1 {
		depth = max(depth, flowFrom)
	}
	var above []string
	for i := e.start + 1; i < end && !isText(e.value); i++ {
		if t.isComment(i) {
			above = append(above, strings.TrimSpace(t.line(i)))
		}
	}
	lines := encode("k", v, depth)
	first := head + strings.TrimPrefix(lines[0], "k:") + comment
	lines = append([]string{first}, indented(column, lines[1:])...)
	return t.replaced(e.start, end, append(indented(column, above), lines...)), nil
}

// keyOf returns the text of an entry's first line up to the colon, and the comment at its end with the spaces before.
func (t *text) keyOf(e entry) (head, comment string, ok bool) {
	line := t.line(e.start)
	before, ok := cut(line, e.key.Column-1)
	if !ok {
		return "", "", false
	}
	for at := len(before); at < len(line); at++ {
		if line[at] != ':' || !isKey(line[len(before):at], e.key.Value) {
			continue
		}
		comment, ok = commentOf(line[at+1:], e.value)
		return line[:at+1], comment, ok
	}
	return "", "", false
}

func isKey(text, key string) bool {
	var got string
	return yaml.Unmarshal([]byte(text), &got) == nil && got == key
}

// commentOf returns the comment after a value that begins in a line, with the spaces before it. It is not ok when too
// much could begin one.
func commentOf(rest string, value *yaml.Node) (comment string, ok bool) {
	const maxTries = 100
	tries := 0
	for at := range len(rest) {
		if rest[at] != '#' || at == 0 || rest[at-1] != ' ' && rest[at-1] != '\t' {
			continue
		}
		text := strings.TrimRight(rest[:at], " \t")
		var n yaml.Node
		if text == "" || isText(value) || yaml.Unmarshal([]byte("k:"+text), &n) == nil && isWhole(&n, value) {
			return rest[len(text):], true
		}
		if tries++; tries == maxTries {
			return "", false
		}
	}
	return "", true
}

// isWhole reports whether a document with one key has a value.
func isWhole(document, value *yaml.Node) bool {
	got, err := valueOf(document.Content[0].Content[1])
	want, wrong := valueOf(value)
	return err == nil && wrong == nil && same(got, want)
}

// setList replaces the items of a list that differ; each of them begins a line.
func (t *text) setList(e entry, old, wanted []Value) []byte {
	first := 0
	for first < min(len(old), len(wanted)) && same(old[first], wanted[first]) {
		first++
	}
	last := 0
	for last < min(len(old), len(wanted))-first && same(old[len(old)-1-last], wanted[len(wanted)-1-last]) {
		last++
	}
	items := e.value.Content
	begin := func(i int) int {
		if i == len(items) {
			return t.end(e)
		}
		return t.heads(items[i].Line-1, e.start+1)
	}
	from, to := begin(first), begin(len(items)-last)
	var lines []string
	for _, item := range wanted[first : len(wanted)-last] {
		lines = append(lines, encodeItem(item)...)
	}
	return t.replaced(from, to, indented(e.value.Column-1, lines))
}

// encodeItem returns the lines of an item of a list.
func encodeItem(v Value) []string {
	lines := encode("k", []Value{v, strings.Repeat("x", flowSize)}, flowFrom)
	lines = lines[1 : len(lines)-1]
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, strings.Repeat(" ", step))
	}
	return lines
}
