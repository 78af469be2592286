package query

import (
	"errors"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// times are the fields of each object that hold a time, by object.TimeFormat.
var times = []string{"created", "updated"}

// isTime reports whether the field is a time of the object itself, which belfry sets. Others of this name, in an object
// within it or in an entry that was copied, are texts like any other.
func (f field) isTime() bool {
	return f.sub == "" && !f.elements && slices.Contains(times, f.top)
}

// timed returns a comparison of a time with its literals as objects have times, so that these compare as their texts
// do.
func (c condition) timed() (condition, error) {
	var literals [][]byte
	for _, literal := range c.literals {
		if string(literal) == "null" && c.op == equals {
			literals = append(literals, literal)
			continue
		}
		text, _ := object.Text(literal)
		last, exact, err := lastTime(text)
		if err != nil {
			return c, errs.New(errs.Invalid,
				`filter: %s is a time, but %s is not one: %s; write a time as in "2026-01-02T15:04:05Z", "2026-01-02T15:04:05.678+02:00" or "2026-01-02"`,
				c.field.name, literal, err)
		}
		if !exact { // it is between two times that objects can have, of which last is the first
			switch c.op {
			case equals:
				continue
			case less:
				c.op = lessOrEqual
			case greaterOrEqual:
				c.op = greater
			}
		}
		literals = append(literals, object.AppendString(nil, last))
	}
	c.literals = literals
	return c, nil
}

// lastTime is object.LastTime of a time as RFC 3339 writes it, or of a date, which is its beginning in UTC.
func lastTime(text string) (last string, exact bool, err error) {
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return object.FormatTime(at), true, nil
	}
	if strings.LastIndexByte(text, ' ') > len(time.DateOnly) {
		return "", false, errors.New("it has a space where a + may have been, which a URL has as %2B")
	}
	if last, exact, err = object.LastTime(text); err == nil {
		return last, exact, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05",
		"2006-01-02 15:04", "2006-01-02t15:04:05"} {
		if _, err := time.Parse(layout, text); err == nil {
			return "", false, errors.New("it has no time zone, such as Z or +02:00")
		}
	}
	return "", false, errors.New("it has another form, or there is no such time")
}
