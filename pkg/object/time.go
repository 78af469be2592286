package object

import (
	"errors"
	"regexp"
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

// LastTime returns the last time that belfry can write that is not after an RFC 3339 time, in any zone and precision,
// and whether the two are equal. Years before 0 and after 9999, to which an offset can lead, become the first and the
// last time. A leap second is after all times of its minute and before all of the next, since no clock here shows it.
func LastTime(text string) (last string, exact bool, err error) {
	if len(text) > dateLength && (text[dateLength] == 't' || text[dateLength] == ' ') { // which RFC 3339 allows
		text = text[:dateLength] + "T" + text[dateLength+1:]
	}
	text = strings.ToUpper(text)
	before, leap := withoutLeap(text)
	at, err := time.Parse(time.RFC3339Nano, before)
	at = at.UTC()
	if err == nil && (!written.MatchString(before) ||
		leap && !at.Add(time.Second).Truncate(time.Second).Equal(monthOf(at).AddDate(0, 1, 0))) {
		err = errors.New("no time of RFC 3339")
	}
	if err != nil {
		return "", false, err
	}
	switch year := at.Year(); {
	case year > 9999:
		return FormatTime(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)), false, nil
	case year < 0:
		return FormatTime(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), false, nil
	case leap:
		return FormatTime(at.Truncate(time.Second).Add(time.Second - time.Microsecond)), false, nil
	default:
		return FormatTime(at), strings.Trim(beyondMicroseconds(text), "0") == "", nil
	}
}

// withoutLeap returns a time with the second before a leap second instead of it: time.Parse knows none.
func withoutLeap(text string) (before string, leap bool) {
	const seconds = dateLength + len("T23:59:")
	if len(text) < seconds+2 || text[seconds:seconds+2] != "60" {
		return text, false
	}
	return text[:seconds] + "59" + text[seconds+2:], true
}

// monthOf returns when the month of a time begins: leap seconds end a month, in UTC.
func monthOf(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC) }

const dateLength = len(time.DateOnly)

// written is how RFC 3339 writes a time. time.Parse takes more: T1:00:00, a comma before the fraction, and +24:00.
var written = regexp.MustCompile(`^[0-9-]{10}T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):\d\d)$`)

// beyondMicroseconds returns the digits of a time's fraction of a second after the sixth: time.Parse drops those after
// the ninth.
func beyondMicroseconds(text string) string {
	_, fraction, _ := strings.Cut(text, ".")
	digits := fraction[:len(fraction)-len(strings.TrimLeft(fraction, "0123456789"))]
	return digits[min(len(digits), 6):]
}
