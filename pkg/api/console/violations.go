package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// violation is a problem at a place in a text that is being edited.
type violation struct {
	errs.Field
	Line int // of the text, from 1; 0 for the text as a whole
}

// violationsIn returns the violations with their lines in a text. If the text lacks the place, the line is that of the
// innermost object or array around it.
func violationsIn(text string, found []errs.Field) []violation {
	all := make([]violation, len(found))
	var root wantedLines
	for i, f := range found {
		all[i].Field = f
		root.add(f.Pointer, &all[i].Line)
	}
	// Malformed text is one problem, whose message has the line. It may be nested too deeply for the reader of lines.
	if _, err := object.Parse([]byte(text)); err == nil && len(all) > 0 {
		l := &lineReader{text: text, decoder: json.NewDecoder(strings.NewReader(text)), line: 1}
		l.value(&root, 0)
	}
	return all
}

// wantedLines are places in a JSON value whose lines are wanted: its own, and by name or index those of what is in it.
type wantedLines struct {
	lines  []*int
	within map[string]*wantedLines
}

func (w *wantedLines) add(pointer string, line *int) {
	if pointer == "" {
		return
	}
	token, rest, more := strings.Cut(pointer[1:], "/")
	if more {
		rest = "/" + rest
	}
	name := object.UnescapeToken(token)
	inner := w.within[name]
	if inner == nil {
		inner = &wantedLines{}
		if w.within == nil {
			w.within = map[string]*wantedLines{}
		}
		w.within[name] = inner
	}
	inner.lines = append(inner.lines, line)
	inner.add(rest, line)
}

// lineReader reads the tokens of a JSON text, which is not malformed, and counts lines.
type lineReader struct {
	text    string
	decoder *json.Decoder
	line    int
	counted int // bytes of the text
}

// next returns the next token, and its line.
func (l *lineReader) next() (json.Token, int) {
	token, err := l.decoder.Token()
	if err != nil {
		return nil, l.line
	}
	at := int(l.decoder.InputOffset())
	l.line += strings.Count(l.text[l.counted:at], "\n")
	l.counted = at
	return token, l.line
}

// value reads a value, and sets the lines of the places in it. named is the line of its name; 0 for a value without a
// name.
func (l *lineReader) value(w *wantedLines, named int) {
	token, line := l.next()
	if named > 0 {
		line = named
	}
	if w == nil {
		w = &wantedLines{}
	}
	for _, wants := range w.lines {
		*wants = line
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return
	}
	for i := 0; l.decoder.More(); i++ {
		name, named := strconv.Itoa(i), 0
		if delim == '{' {
			var key json.Token
			key, named = l.next()
			name, _ = key.(string)
		}
		l.value(w.within[name], named)
	}
	l.next() // its end
}

// isCorrectable reports whether a form is shown again with an error: who filled it in can do something about it.
func isCorrectable(err error) bool {
	switch errs.KindOf(err) {
	case errs.Invalid, errs.TooLarge, errs.Conflict:
		return true
	default:
		return false
	}
}
