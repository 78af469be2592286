package object

import "time"

// TimeFormat is how belfry writes times in objects and events: UTC with
// microseconds and a fixed width, so that texts sort by time.
const TimeFormat = "2006-01-02T15:04:05.000000Z"

// FormatTime writes a time by TimeFormat.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// TimeValue writes a time by TimeFormat as a JSON string.
func TimeValue(t time.Time) []byte { return t.UTC().AppendFormat(nil, `"`+TimeFormat+`"`) }
