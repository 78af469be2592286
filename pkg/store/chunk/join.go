package chunk

import (
	"cmp"
	"slices"
	"sync"

	"belfry/pkg/errs"
)

// sparse reports whether numbers below next are mostly of no entry.
func sparse(next, count int) bool { return next > 4*count+64 }

// Join returns the body of a record: its head with the entries of its arrays, which are in the order of their places.
// It reports errs.Internal if chunks lack entries, or have others.
func Join(head []byte, arrays []Content) ([]byte, error) {
	length := len(head)
	for i := range arrays {
		length += arrays[i].length()
	}
	body := make([]byte, 0, length)
	from := 0
	for i := range arrays {
		a := &arrays[i]
		if a.At < from || a.At+len("[]") > len(head) || string(head[a.At:a.At+len("[]")]) != "[]" {
			return nil, errMalformed()
		}
		body = append(body, head[from:a.At]...)
		var err error
		if body, err = a.appendTo(body); err != nil {
			return nil, err
		}
		from = a.At + len("[]")
	}
	return append(body, head[from:]...), nil
}

// appendTo appends the array.
func (c *Content) appendTo(body []byte) ([]byte, error) {
	buffer := valueBuffers.Get().(*[][]byte)
	defer func() {
		clear(*buffer)
		valueBuffers.Put(buffer)
	}()
	values, err := c.ordered(buffer)
	if err != nil {
		return nil, err
	}
	separator, count, begins := byte('['), 0, len(body)
	for _, value := range values {
		if value != nil {
			body = append(append(body, separator), value...)
			separator = ','
			count++
		}
	}
	if count == 0 {
		body = append(body, '[')
	}
	body = append(body, ']')
	if count != c.Count || len(body)-begins != c.length() {
		return nil, errs.New(errs.Internal,
			"the array %s has %d entries of %d bytes in its chunks, and should have %d of %d: the data is damaged; "+
				"restore a backup", c.Name, count, len(body)-begins-1, c.Count, c.Bytes)
	}
	return body, nil
}

// valueBuffers has lists of values, which are large where arrays are.
var valueBuffers = sync.Pool{New: func() any { return new([][]byte) }}

// ordered returns the values of the entries in the order of their numbers, with nil between them, in the buffer if they
// have no order of their own.
func (c *Content) ordered(buffer *[][]byte) ([][]byte, error) {
	if sparse(c.Next, c.Count) {
		return c.sorted()
	}
	if cap(*buffer) < c.Next {
		*buffer = make([][]byte, c.Next)
	}
	*buffer = (*buffer)[:c.Next]
	values, valid := *buffer, true
	for _, data := range c.Data {
		err := each(data, func(e entry) {
			if e.number >= len(values) || values[e.number] != nil {
				valid = false
				return
			}
			values[e.number] = e.value
		})
		if err != nil || !valid {
			return nil, errMalformed()
		}
	}
	return values, nil
}

// sorted is ordered where the numbers have many gaps.
func (c *Content) sorted() ([][]byte, error) {
	var all []entry
	for _, data := range c.Data {
		if err := each(data, func(e entry) { all = append(all, e) }); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	values := make([][]byte, len(all))
	for i, e := range all {
		values[i] = e.value
	}
	return values, nil
}
