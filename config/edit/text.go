package edit

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is a configuration by its lines, each with its line break.
type text struct {
	lines   []string
	newline string
}

// otherBreaks are the characters besides \n that YAML 1.1 takes for the end of a line.
const otherBreaks = "\r\u0085\u2028\u2029"

// hasOtherBreaks reports whether the lines of YAML are not those of a text.
func hasOtherBreaks(data []byte) bool {
	return bytes.ContainsAny(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), otherBreaks)
}

func newText(data []byte) *text {
	t := &text{newline: "\n"}
	for line := range strings.SplitAfterSeq(string(data), "\n") {
		if line != "" {
			t.lines = append(t.lines, line)
		}
	}
	if len(t.lines) > 0 && strings.HasSuffix(t.lines[0], "\r\n") {
		t.newline = "\r\n"
	}
	return t
}

// replaced returns the text with other lines in place of those from one to before another one.
func (t *text) replaced(from, to int, lines []string) []byte {
	var b strings.Builder
	for _, line := range t.lines[:from] {
		b.WriteString(line)
	}
	if from > 0 && !strings.HasSuffix(t.lines[from-1], "\n") {
		b.WriteString(t.newline)
	}
	for _, line := range lines {
		b.WriteString(line + t.newline)
	}
	for _, line := range t.lines[to:] {
		b.WriteString(line)
	}
	return []byte(b.String())
}

// line is a line without its break.
func (t *text) line(i int) string { return strings.TrimRight(t.lines[i], "\r\n") }

func (t *text) isBlank(i int) bool { return strings.TrimSpace(t.lines[i]) == "" }

func (t *text) isComment(i int) bool { return strings.HasPrefix(strings.TrimSpace(t.lines[i]), "#") }

// indent is how many spaces a line begins with.
func (t *text) indent(i int) int { return len(t.lines[i]) - len(strings.TrimLeft(t.lines[i], " ")) }

// documentEnd is the line that ends the document which begins in a line, or the number of lines.
func (t *text) documentEnd(begin int) int {
	for i := begin; i < len(t.lines); i++ {
		if line := t.line(i); line == "..." || strings.HasPrefix(line, "... ") {
			return i
		}
	}
	return len(t.lines)
}

// entry is an entry of a block, in the lines from start to before limit.
type entry struct {
	key, value   *yaml.Node
	first        bool // of its block
	alone        bool // in its block
	start, limit int
}

func (e entry) isBlock() bool {
	return e.value.Kind == yaml.MappingNode && e.value.Style&yaml.FlowStyle == 0 && len(e.value.Content) > 0
}

func (e entry) isBlockList() bool {
	return e.value.Kind == yaml.SequenceNode && e.value.Style&yaml.FlowStyle == 0 && len(e.value.Content) > 0
}

// at returns an entry of a block by its place among the nodes.
func (t *text) at(b block, i int) entry {
	n := b.node.Content
	e := entry{key: n[i], value: n[i+1], first: i == 0, alone: len(n) == 2, start: n[i].Line - 1, limit: b.limit}
	if i+2 < len(n) {
		e.limit = n[i+2].Line - 1
	}
	return e
}

func (t *text) find(b block, key string) (entry, bool) {
	for i := 0; i+1 < len(b.node.Content); i += 2 {
		if b.node.Content[i].Value == key {
			return t.at(b, i), true
		}
	}
	return entry{}, false
}

// beginsLine reports whether nothing is before a node in its line.
func (t *text) beginsLine(n *yaml.Node) bool {
	before, ok := cut(t.line(n.Line-1), n.Column-1)
	return ok && strings.Trim(before, " \ufeff") == ""
}

// cut returns the first characters of a line.
func cut(line string, characters int) (before string, ok bool) {
	at := 0
	for range characters {
		if at >= len(line) {
			return line, false
		}
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
	}
	return line[:at], true
}

// end is the line after the last one of an entry. Blank lines and comments after it are not its own.
func (t *text) end(e entry) int {
	column, inText := e.key.Column-1, endsInText(e.value)
	i := e.limit
	for i > e.start+1 && (t.isBlank(i-1) || t.isComment(i-1) && (!inText || t.indent(i-1) <= column)) {
		i--
	}
	return i
}

// endsInText reports whether the last value within a node is a text of several lines, in which # begins no comment.
func endsInText(n *yaml.Node) bool {
	for len(n.Content) > 0 {
		n = n.Content[len(n.Content)-1]
	}
	return isText(n)
}

// isText reports whether a node is a text of several lines after | or >.
func isText(n *yaml.Node) bool { return n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 }

// comments skips the comments from a line on that are at least so far to the right.
func (t *text) comments(from, limit, indent int) int {
	for from < limit && t.isComment(from) && t.indent(from) >= indent {
		from++
	}
	return from
}

// heads is the first of the comments directly above a line that are as far to the right.
func (t *text) heads(from, lowest int) int {
	indent := t.indent(from)
	for from > lowest && t.isComment(from-1) && t.indent(from-1) == indent {
		from--
	}
	return from
}
