package object

import (
	"strings"
	"time"
)

// TimeFormat is how belfry writes times in objects and events: UTC with
// microseconds and a fixed width, so that texts sort by time.
const TimeFormat = "2006-01-02T15:04:05.000000Z"

// FormatTime writes a time by TimeFormat.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// TimeValue writes a time by TimeFormat as a JSON string.
func TimeValue(t time.Time) []byte { return t.UTC().AppendFormat(nil, `"`+TimeFormat+`"`) }

// LastTime returns the last time that belfry can write which is not after one that RFC 3339 writes, in whatever zone and however
// precisely, and whether it is that time. Years before 0 and after 9999, to which an offset can lead, have the first and the last
// time.
func LastTime(text string) (last string, exact bool, err error) {
	var at time.Time
	if err := at.UnmarshalText([]byte(text)); err != nil { // which is strict, as time.Parse is not: T1:00:00, a comma, +24:00
		return "", false, err
	}
	at = at.UTC()
	switch year := at.Year(); {
	case year > 9999:
		return FormatTime(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)), false, nil
	case year < 0:
		return FormatTime(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), false, nil
	default:
		return FormatTime(at), strings.Trim(beyondMicroseconds(text), "0") == "", nil
	}
}

// beyondMicroseconds returns the digits of a time's fraction of a second after the sixth: time.Time drops those after the ninth.
func beyondMicroseconds(text string) string {
	_, fraction, _ := strings.Cut(text, ".")
	digits := fraction[:len(fraction)-len(strings.TrimLeft(fraction, "0123456789"))]
	return digits[min(len(digits), 6):]
}
