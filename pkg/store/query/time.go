package query

import (
	"errors"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// times are the fields of each object that hold a time, by object.TimeFormat.
var times = []string{"created", "updated"}

// isTime reports whether the field is a time of the object itself, which belfry sets. Others of this name, in an object within it or
// in an entry that was copied, are texts like any other.
func (f field) isTime() bool {
	return f.sub == "" && !f.elements && slices.Contains(times, f.top)
}

// timed returns a comparison of a time with its literals as objects have times, so that these compare as their texts do.
func (c condition) timed() (condition, error) {
	var literals [][]byte
	for _, literal := range c.literals {
		if string(literal) == "null" && c.op == equals {
			literals = append(literals, literal)
			continue
		}
		text, _ := object.Text(literal)
		at, err := parseTime(text)
		if err != nil {
			return c, errs.New(errs.Invalid, `filter: %s is a time, and %s is none: %s; a time is written as in "2026-01-02T15:04:05Z", "2026-01-02T15:04:05.678+02:00" or "2026-01-02"`,
				c.field.name, literal, err)
		}
		stored, exact := storedTime(at)
		if !exact { // it is between two times that objects can have, of which stored is the first
			switch c.op {
			case equals:
				continue
			case less:
				c.op = lessOrEqual
			case greaterOrEqual:
				c.op = greater
			}
		}
		literals = append(literals, stored)
	}
	c.literals = literals
	return c, nil
}

// storedTime returns the last time that an object can have which is not after a time, and whether it is that time. Years
// before 0 and after 9999, which an offset can lead to, are the first and the last time.
func storedTime(at time.Time) (literal []byte, exact bool) {
	at = at.UTC()
	switch year := at.Year(); {
	case year > 9999:
		return object.TimeValue(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)), false
	case year < 0:
		return object.TimeValue(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), false
	default:
		return object.TimeValue(at), at.Nanosecond()%1000 == 0
	}
}

// parseTime reads a time as RFC 3339 writes it, or a date, which is its beginning in UTC.
func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, nil
	}
	if len(text) > len(time.DateOnly) {
		switch rest := text[len(time.DateOnly):]; {
		case strings.LastIndexByte(rest, ' ') > 0:
			return time.Time{}, errors.New("it has a space where a + may have been, which a URL has as %2B")
		case rest[0] == ' ' || rest[0] == 't':
			text = text[:len(time.DateOnly)] + "T" + rest[1:]
		}
	}
	upper := strings.ToUpper(text)
	at, err := time.Parse(time.RFC3339Nano, upper)
	if err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if _, err := time.Parse(layout, upper); err == nil {
			return at, errors.New("it has no time zone, such as Z or +02:00")
		}
	}
	return at, errors.New("there is no such time, or it is written otherwise")
}
