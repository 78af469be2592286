package object

import (
	"bytes"

	"belfry/pkg/errs"
)

// Each calls f with each top-level field of an encoded object, in order, until
// f returns false. It trusts the syntax below the top level, which makes it
// cheap: use it on data that belfry encoded, not on input from clients.
// The value refers to data.
func Each(data []byte, f func(name string, value []byte) bool) error {
	valid := true
	err := members(data, func(quoted []byte, start, stop int) bool {
		var name string
		if name, valid = Text(quoted); !valid {
			return false
		}
		return f(name, data[start:stop:stop])
	})
	if !valid {
		return errs.New(errs.Internal, "stored object: a field's name is not a JSON string")
	}
	return err
}

// Field returns the text of one top-level field of an encoded object, nil when
// it is absent. Like Each it trusts the syntax.
func Field(data []byte, name string) []byte {
	from, to, ok := Span(data, name)
	if !ok {
		return nil
	}
	return data[from:to:to]
}

// Span returns where the text of one top-level field of an encoded object begins and ends. Like Each it trusts the
// syntax.
func Span(data []byte, name string) (from, to int, ok bool) {
	_ = members(data, func(quoted []byte, start, stop int) bool {
		if ok = isQuoted(quoted, name); ok {
			from, to = start, stop
		}
		return !ok
	})
	return from, to, ok
}

// Values returns the texts of some top-level fields of an encoded object, in the order of their names; nil for one that
// is absent. Like Each it trusts the syntax.
func Values(data []byte, names []string) [][]byte {
	found, absent := make([][]byte, len(names)), len(names)
	_ = members(data, func(quoted []byte, start, stop int) bool {
		for i, name := range names {
			if found[i] == nil && isQuoted(quoted, name) {
				found[i] = data[start:stop:stop]
				absent--
			}
		}
		return absent > 0
	})
	return found
}

// members is Each with names as they are in data, quotes and escapes included, and with where values start and stop.
func members(data []byte, f func(quoted []byte, start, stop int) bool) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return errs.New(errs.Internal, "stored object: no { at its beginning")
	}
	i = skipSpace(data, i+1)
	for i < len(data) && data[i] != '}' {
		end := skipValue(data, i)
		colon := skipSpace(data, end)
		if data[i] != '"' || colon >= len(data) || data[colon] != ':' {
			return errs.New(errs.Internal, "stored object: no field at byte %d", i)
		}
		start := skipSpace(data, colon+1)
		stop := skipValue(data, start)
		if stop == start {
			return errs.New(errs.Internal, "stored object: no value at byte %d", start)
		}
		if !f(data[i:end:end], start, stop) {
			return nil
		}
		i = skipComma(data, stop)
	}
	if i >= len(data) {
		return errs.New(errs.Internal, "stored object: no } at its end")
	}
	return nil
}

// isQuoted reports whether the JSON string quoted says s, without allocating
// in the usual case that it holds no escapes.
func isQuoted(quoted []byte, s string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == s
	}
	text, ok := Text(quoted)
	return ok && text == s
}

// Elements calls f with each element of an encoded array. Other values have no elements.
// Like Each it trusts the syntax.
func Elements(data []byte, f func(value []byte) bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return
	}
	i = skipSpace(data, i+1)
	for i < len(data) && data[i] != ']' {
		end := skipValue(data, i)
		if end == i || !f(data[i:end:end]) {
			return
		}
		i = skipComma(data, end)
	}
}

// skipComma returns the index of the text after an element that ended at i.
func skipComma(data []byte, i int) int {
	i = skipSpace(data, i)
	if i < len(data) && data[i] == ',' {
		i = skipSpace(data, i+1)
	}
	return i
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index after the value that begins at i, or i itself
// when none does.
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return i
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		depth := 0
		for i < len(data) {
			switch data[i] {
			case '"':
				i = skipString(data, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	default:
		for i < len(data) && !endsLiteral(data[i]) {
			i++
		}
		return i
	}
}

func endsLiteral(c byte) bool {
	switch c {
	case ',', ']', '}', ':', ' ', '\n', '\t', '\r':
		return true
	default:
		return false
	}
}

// skipString returns the index after the string whose quote is at i. Most
// strings hold no escape: two searches are faster than a loop then.
func skipString(data []byte, i int) int {
	i++
	end := bytes.IndexByte(data[i:], '"')
	if end < 0 {
		return len(data)
	}
	if bytes.IndexByte(data[i:i+end], '\\') < 0 {
		return i + end + 1
	}
	for ; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// Without returns an encoded object without some of its fields.
func Without(data []byte, leaveOut func(name string) bool) []byte {
	out := append(make([]byte, 0, len(data)), '{')
	_ = Each(data, func(name string, value []byte) bool {
		if leaveOut(name) {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = AppendString(out, name)
		out = append(out, ':')
		out = append(out, value...)
		return true
	})
	return append(out, '}')
}
