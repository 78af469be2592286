package chunk

import (
	"bytes"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// Content is an array with the contents of all its chunks; nil is an empty one.
type Content struct {
	Array
	Data [][]byte
}

// Described returns what is known of arrays besides their contents.
func Described(contents []Content) []Array {
	arrays := make([]Array, len(contents))
	for i := range contents {
		arrays[i] = contents[i].Array
	}
	return arrays
}

// Arrays are the arrays of a store that may be in chunks.
type Arrays struct {
	Names []string
	More  func() bool // whether arrays may be put in chunks that are whole; nil: they may
}

// ArraysOf returns those of a specification.
func ArraysOf(s *driver.Spec) Arrays { return Arrays{s.Arrays, s.MoreChunks} }

// May reports whether a body may have to be split that is written where none is in chunks.
func (a Arrays) May(body []byte) bool {
	return len(body) >= Least && len(a.Names) > 0 && (a.More == nil || a.More())
}

// HaveLarge reports whether one of the arrays is large in a body.
func (a Arrays) HaveLarge(body []byte) bool {
	return len(body) >= Least && slices.ContainsFunc(a.Names, func(name string) bool {
		from, to, _ := object.Span(body, name)
		return to-from >= Least
	})
}

// Split returns the head of a body, and the arrays that are to be in chunks. before are those that the record has in
// chunks. An entry keeps its number where that is possible, so that few chunks differ.
//
// An array stays whole if it is small, if not all of its elements are entries, or if it has escapes that belfry no
// longer writes: its size would not be that by which limits count.
func (a Arrays) Split(body []byte, before []Content) (head []byte, after []Content) {
	more := a.May(body)
	for _, name := range a.Names {
		was := slices.IndexFunc(before, func(c Content) bool { return c.Name == name })
		if was < 0 && !more {
			continue
		}
		former := Content{Array: Array{Name: name}}
		least := Least
		if was >= 0 {
			former, least = before[was], Kept
		}
		from, to, ok := object.Span(body, name)
		if !ok || to-from < least {
			continue
		}
		array := body[from:to]
		values, ok := valuesOf(array)
		if ok && len(object.Canonical(array)) == len(array) {
			former.At = from
			after = append(after, former.with(values))
		}
	}
	if len(after) == 0 {
		return body, nil
	}
	slices.SortFunc(after, func(a, b Content) int { return a.At - b.At })
	return withoutArrays(body, after), after
}

// withoutArrays returns a body with arrays empty, and corrects their places.
func withoutArrays(body []byte, arrays []Content) []byte {
	head := make([]byte, 0, len(body))
	from := 0
	for i := range arrays {
		a := &arrays[i]
		head = append(head, body[from:a.At]...)
		from = a.At + a.length()
		a.At = len(head)
		head = append(head, "[]"...)
	}
	return slices.Clip(append(head, body[from:]...))
}

// value is an element of an array with its uuid.
type value struct {
	uuid string
	text []byte
}

// valuesOf returns the elements of an array if all are entries, and if it is written as Join writes it.
func valuesOf(array []byte) (values []value, ok bool) {
	seen := map[string]bool{}
	ok = true
	length := len("[]") - 1
	object.Elements(array, func(text []byte) bool {
		uuid := uuidOf(text)
		if ok = uuid != "" && !seen[uuid]; !ok {
			return false
		}
		seen[uuid] = true
		values = append(values, value{uuid, text})
		length += len(text) + 1
		return true
	})
	return values, ok && len(values) > 0 && length == len(array)
}

// with returns the array with other values, in their order.
func (c Content) with(values []value) Content {
	numbers := c.numbers()
	next := Content{Array: Array{Name: c.Name, At: c.At, Chunks: c.Chunks, Count: len(values)}}
	for _, v := range values {
		next.Bytes += len(v.text) + 1
	}
	if c.Chunks == 0 || next.Outgrown() || next.Bytes < c.Chunks*size/4 {
		next.Chunks = chunksFor(next.Bytes)
	}
	chunks := make([][]entry, next.Chunks)
	if !next.number(values, numbers, chunks) {
		clear(chunks)
		next.number(values, nil, chunks)
	}
	next.Data = make([][]byte, next.Chunks)
	for n, entries := range chunks {
		next.Data[n] = encode(entries)
	}
	return next
}

// number puts values into chunks with the numbers that they had; others have the next one. It returns false if these
// are not in the order of the values.
func (c *Content) number(values []value, numbers map[string]int, chunks [][]entry) (ordered bool) {
	c.Next = 0
	for _, v := range values {
		number, had := numbers[v.uuid]
		if !had {
			number = c.Next
		}
		if number < c.Next {
			return false
		}
		n := c.Of(v.uuid)
		chunks[n] = append(chunks[n], entry{number, v.text})
		c.Next = number + 1
	}
	return true
}

// numbers returns the numbers of the entries by their uuids; nil if they are malformed or have many gaps.
func (c *Content) numbers() map[string]int {
	if sparse(c.Next, c.Count) {
		return nil
	}
	numbers := make(map[string]int, c.Count)
	for _, data := range c.Data {
		if each(data, func(e entry) { numbers[uuidOf(e.value)] = e.number }) != nil {
			return nil
		}
	}
	return numbers
}

// Changed returns the chunks of an array that differ from those it had; nil for one that is empty now or is no more.
func (c *Content) Changed(before []Content) map[int][]byte {
	at := slices.IndexFunc(before, func(b Content) bool { return b.Name == c.Name })
	var former [][]byte
	if at >= 0 {
		former = before[at].Data
	}
	changed := map[int][]byte{}
	for n := range max(len(former), len(c.Data)) {
		var was, is []byte
		if n < len(former) {
			was = former[n]
		}
		if n < len(c.Data) {
			is = c.Data[n]
		}
		if !bytes.Equal(was, is) {
			changed[n] = is
		}
	}
	return changed
}
