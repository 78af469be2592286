package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"belfry/pkg/object"
)

// Bounds of a schema file. The library parses each level of nesting again, so that
// both together bound the time to compile.
const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 100
)

type nodeKind uint8

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	arrayNode
	objectNode
)

func (k nodeKind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is one value of a schema file with its position.
type node struct {
	file    *sourceFile
	kind    nodeKind
	truth   bool   // of a boolean
	text    string // of a string, unquoted; of a number, as written
	members []member
	items   []*node
	parent  *node
	token   string // of the JSON pointer, from the parent to here, escaped
	// place is the byte offset that a message names: the value's, or, for an
	// object's member, that of its name.
	place      int
	start, end int
}

type member struct {
	name  string
	value *node
}

type sourceFile struct {
	data  []byte
	draft draft
}

func (n *node) line() int {
	return 1 + bytes.Count(n.file.data[:n.place], []byte{'\n'})
}

// pointer is the RFC 6901 pointer to the node in its file.
func (n *node) pointer() string {
	if n.parent == nil {
		return ""
	}
	return n.parent.pointer() + "/" + n.token
}

func (n *node) raw() json.RawMessage { return n.file.data[n.start:n.end] }

// get finds a member of an object, or nil. Objects in schemas are small or are
// not asked.
func (n *node) get(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// sourceParser makes a node tree of a schema file. It relies on encoding/json for
// the grammar and adds positions, and detects duplicate names, which encoding/json ignores.
type sourceParser struct {
	file    *sourceFile
	decoder *json.Decoder
	fault   *Refusal
}

var errSource = errors.New("malformed schema")

func parseSource(name string, data []byte) (*node, error) {
	file := &sourceFile{data: data}
	top := &node{file: file}
	refused := &refusals{name: name}
	if len(data) > maxSchemaBytes {
		refused.add(top, "",
			fmt.Sprintf("the file has %d bytes, more than the %d a schema may have", len(data), maxSchemaBytes),
			"split what it describes into several stores, or drop descriptions and examples")
		return nil, refused.err()
	}
	p := &sourceParser{file: file, decoder: json.NewDecoder(bytes.NewReader(data))}
	p.decoder.UseNumber()
	n, err := p.value(nil, "", 0)
	if err == nil {
		if _, more := p.decoder.Token(); !errors.Is(more, io.EOF) {
			err = p.malformed("something follows the schema's end")
		}
	}
	if err != nil {
		refused.list = append(refused.list, *p.fault)
		return nil, refused.err()
	}
	return n, nil
}

func (p *sourceParser) value(parent *node, token string, depth int) (*node, error) {
	start := p.skipTo()
	literal, err := p.decoder.Token()
	if err != nil {
		return nil, p.syntaxError(err)
	}
	n := &node{file: p.file, parent: parent, token: token, place: start, start: start}
	switch t := literal.(type) {
	case nil:
		n.kind = nullNode
	case bool:
		n.kind, n.truth = boolNode, t
	case json.Number:
		n.kind, n.text = numberNode, t.String()
	case string:
		n.kind, n.text = stringNode, t
	case json.Delim:
		if depth == maxSchemaDepth {
			return nil, p.refuse(start, n.pointer(), fmt.Sprintf("nested deeper than %d levels", maxSchemaDepth),
				"move inner schemas to $defs and refer to them")
		}
		if t == '{' {
			n.kind, err = objectNode, p.object(n, depth)
		} else {
			n.kind, err = arrayNode, p.array(n, depth)
		}
		if err != nil {
			return nil, err
		}
	}
	n.end = int(p.decoder.InputOffset())
	return n, nil
}

func (p *sourceParser) object(n *node, depth int) error {
	names := map[string]bool{}
	for p.decoder.More() {
		place := p.skipTo()
		token, err := p.decoder.Token()
		if err != nil {
			return p.syntaxError(err)
		}
		name, ok := token.(string)
		if !ok {
			return p.malformed("an object's member has no name")
		}
		if names[name] {
			return p.refuse(place, n.pointer()+"/"+object.EscapeToken(name),
				fmt.Sprintf("the name %q occurs twice in one object", name), "remove one of the two")
		}
		names[name] = true
		value, err := p.value(n, object.EscapeToken(name), depth+1)
		if err != nil {
			return err
		}
		value.place = place
		n.members = append(n.members, member{name: name, value: value})
	}
	_, err := p.decoder.Token()
	return p.syntaxError(err)
}

func (p *sourceParser) array(n *node, depth int) error {
	for p.decoder.More() {
		item, err := p.value(n, strconv.Itoa(len(n.items)), depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.decoder.Token()
	return p.syntaxError(err)
}

// skipTo is the offset of the next token: the decoder's own offset is right after
// the one before.
func (p *sourceParser) skipTo() int {
	offset := int(p.decoder.InputOffset())
	for offset < len(p.file.data) && strings.IndexByte(" \t\r\n,:", p.file.data[offset]) >= 0 {
		offset++
	}
	return offset
}

func (p *sourceParser) syntaxError(err error) error {
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return p.refuse(int(syntax.Offset)-1, "", "this is not JSON: "+syntax.Error(), "correct the file's syntax here")
	}
	return p.malformed("the file ends too early")
}

func (p *sourceParser) malformed(problem string) error {
	return p.refuse(p.skipTo(), "", "this is not JSON: "+problem, "correct the file's syntax here")
}

func (p *sourceParser) refuse(offset int, pointer, problem, advice string) error {
	at := &node{file: p.file, place: max(0, min(offset, len(p.file.data)))}
	p.fault = &Refusal{Line: at.line(), Pointer: pointer, Problem: problem, Advice: advice}
	return errSource
}
