package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// A profile becomes an object, which is stricter than the JSON of some providers: half an emoji, a NUL character, text
// in Latin-1, a duplicate member. Such values do not identify the user, and a retry would return them again. So they
// are repaired or omitted, and the log names them.
//
// The fields that identify the user are exact: the login fails if they need a repair, since two repaired ids could
// become equal.

// repair parses an object that a provider sent. changes are the changed parts, for the log.
func repair(body []byte, exact ...string) (o object.Object, changes []string, err error) {
	if o, err = object.Parse(body); err == nil {
		return o, nil, nil
	}
	r := repairer{exact: exact}
	text := r.legible(object.WithoutMark(body))
	members, ok := r.members(text)
	if !ok {
		return nil, nil, err // of the text as it was sent
	}
	o = object.Object{}
	for _, m := range members {
		if m.twice || m.changed {
			if slices.Contains(exact, m.name) {
				return nil, nil, errs.New(errs.Invalid, "%q occurs more than once, or has invalid characters", m.name)
			}
		}
		value, less, kept := r.tidy(m.value, 1)
		if kept {
			_, err := object.Parse(slices.Concat([]byte(`{"v":`), value, []byte(`}`)))
			kept = err == nil // its content is not nested too deeply by itself
		}
		switch {
		// An address can grant access.
		case !kept || m.twice || m.changed && strings.Contains(strings.ToLower(m.name), "mail"):
			changes = append(changes, changed(m.name, "left out"))
			continue
		case less || m.changed:
			changes = append(changes, changed(m.name, "repaired"))
		}
		o[m.name] = value
	}
	sent := func(m member) bool { return m.name == "email" }
	if o["email"] == nil && o["email_verified"] != nil && slices.ContainsFunc(members, sent) {
		delete(o, "email_verified") // it is about that address, and not about one of another document
		changes = append(changes, changed("email_verified", "left out"))
	}
	o, err = object.Parse(o.Encode())
	return o, changes, err
}

// changed describes the change of a field. It omits a name that could be a secret: a provider may send any text.
func changed(name, what string) string {
	const most = 32
	plain := name != "" && len(name) <= most && name[0] >= 'a' && name[0] <= 'z' &&
		!strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
		})
	if !plain {
		name = "a field"
	}
	return name + ": " + what
}

// repairer repairs one text.
type repairer struct {
	exact   []string
	changed []int // the starts of changed strings in the result of legible
}

// legible returns a text with strings that a store accepts.
func (r *repairer) legible(body []byte) []byte {
	text := make([]byte, 0, len(body))
	for i := 0; i < len(body); {
		if body[i] != '"' {
			text = append(text, body[i])
			i++
			continue
		}
		end := stringEnd(body, i)
		raw := body[i:end]
		if fixed := legibleString(raw); !bytes.Equal(fixed, raw) {
			r.changed = append(r.changed, len(text))
			raw = fixed
		}
		text, i = append(text, raw...), end
	}
	return text
}

// stringEnd returns the index after the string that begins at start.
func stringEnd(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// legibleString returns a JSON string with U+FFFD for NUL and for half a surrogate pair, and with bytes that are not
// UTF-8 read as Latin-1. Other malformed strings stay.
func legibleString(raw []byte) []byte {
	if strict, err := jsontext.AppendUnquote(nil, raw); err == nil && bytes.IndexByte(strict, 0) < 0 {
		return raw
	}
	fixed := make([]byte, 0, len(raw)+8)
	for i := 0; i < len(raw); {
		c, size := utf8.DecodeRune(raw[i:])
		switch {
		case c == utf8.RuneError && size == 1 && raw[i] >= 0xa0:
			fixed = utf8.AppendRune(fixed, rune(raw[i]))
		case c == utf8.RuneError && size == 1:
			fixed = utf8.AppendRune(fixed, utf8.RuneError)
		case c < ' ':
			fixed = append(fixed, `\u00`...)
			fixed = append(fixed, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			fixed = append(fixed, raw[i:i+size]...)
		}
		i += size
	}
	var text string
	if json.Unmarshal(fixed, &text) != nil {
		return raw
	}
	return object.AppendString(nil, strings.ReplaceAll(text, "\x00", string(utf8.RuneError)))
}

// member is one of an object.
type member struct {
	name    string
	value   []byte
	changed bool // a string in it was changed
	twice   bool // another member has the same name and another value
}

// members returns the members of an object, each name once; false for other values.
func (r *repairer) members(text []byte) (all []member, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, false
	}
	at := map[string]int{}
	for dec.PeekKind() != '}' {
		before := dec.InputOffset()
		quoted, err := dec.ReadValue()
		if err != nil {
			return nil, false
		}
		name, isText := object.Text(quoted)
		value, err := dec.ReadValue()
		if err != nil || !isText {
			return nil, false
		}
		m := member{name: name, value: bytes.Clone(value), changed: r.hasChanged(int(before), int(dec.InputOffset()))}
		if i, known := at[name]; known {
			all[i].twice = all[i].twice || !bytes.Equal(all[i].value, m.value)
			all[i].changed = all[i].changed || m.changed
			continue
		}
		at[name] = len(all)
		all = append(all, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, false
	}
	_, err := dec.ReadToken()
	return all, errors.Is(err, io.EOF)
}

// hasChanged reports whether legible has changed a string between two places of its result.
func (r *repairer) hasChanged(from, to int) bool {
	i, _ := slices.BinarySearch(r.changed, from)
	return i < len(r.changed) && r.changed[i] < to
}

// tidy returns a value without members that occur more than once with different values, and whether there were any; ok
// is false for a value that an object still can't have, such as one that is nested too deeply.
func (r *repairer) tidy(value []byte, depth int) (kept []byte, less, ok bool) {
	if o, err := object.Parse(slices.Concat([]byte(`{"v":`), value, []byte(`}`))); err == nil {
		return o["v"], false, true
	}
	switch {
	case depth == object.MaxDepth:
		return nil, false, false
	case value[0] == '{':
		return r.tidyObject(value, depth)
	case value[0] == '[':
		list := []byte{'['}
		ok = true
		object.Elements(value, func(element []byte) bool {
			if len(list) > 1 {
				list = append(list, ',')
			}
			var one []byte
			var fewer bool
			one, fewer, ok = r.tidy(element, depth+1)
			list, less = append(list, one...), less || fewer
			return ok
		})
		return append(list, ']'), less, ok
	default:
		return nil, false, false
	}
}

func (r *repairer) tidyObject(value []byte, depth int) (kept []byte, less, ok bool) {
	members, ok := (&repairer{}).members(value)
	if !ok {
		return nil, false, false
	}
	o := object.Object{}
	for _, m := range members {
		if m.twice {
			less = true
			continue
		}
		one, fewer, ok := r.tidy(m.value, depth+1)
		if !ok {
			return nil, false, false
		}
		o[m.name], less = one, less || fewer
	}
	return o.Encode(), less, true
}

// maxProfile is the maximum size of a stored profile in bytes. If the reply is larger, fields are omitted, the largest
// first.
const maxProfile = 64 << 10

// bound omits fields of a profile that are too large, or nested too deeply to be copied with their ident.
func bound(o object.Object, exact ...string) (changes []string) {
	names := o.Names()
	for _, name := range names {
		if object.CheckCopied((object.Object{"": o[name]}).Encode()) != nil && !slices.Contains(exact, name) {
			delete(o, name)
			changes = append(changes, changed(name, "left out, nested too deep"))
		}
	}
	names = slices.DeleteFunc(o.Names(), func(name string) bool { return slices.Contains(exact, name) })
	slices.SortStableFunc(names, func(a, b string) int { return len(o[b]) + len(b) - len(o[a]) - len(a) })
	for size := len(o.Encode()); size > maxProfile && len(names) > 0; names = names[1:] {
		size -= len(o[names[0]]) + len(names[0])
		delete(o, names[0])
		changes = append(changes, changed(names[0], "left out, too large"))
	}
	return changes
}
