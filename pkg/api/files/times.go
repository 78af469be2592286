package files

import (
	"net/http"
	"time"
)

// times are the times at which a file and its object were last written, in seconds, as in dates of HTTP.
type times struct {
	uploaded time.Time // zero: unknown
	written  time.Time // its object
}

// timesOf returns the times of a record that was created at a time in an object at a revision, which is a clock
// reading.
func timesOf(created string, revision uint64) times {
	uploaded, err := time.Parse(time.RFC3339Nano, created)
	if err != nil {
		return times{}
	}
	return times{uploaded.UTC().Truncate(time.Second), time.UnixMicro(int64(revision)).UTC().Truncate(time.Second)} //nolint:gosec // a time
}

func (t times) known() bool { return !t.uploaded.IsZero() }

// header returns the Last-Modified of a reply that is sent now. It is never in the future, even if the clock of the
// process that wrote the file is ahead (RFC 9110, 8.8.2.1).
func (t times) header(now time.Time) string {
	if t.uploaded.After(now) {
		return now.UTC().Format(http.TimeFormat)
	}
	return t.uploaded.Format(http.TimeFormat)
}

// condition returns the date of a precondition. A malformed date is ignored, as RFC 9110 demands, and so is the date if
// the time of the file is unknown.
func (t times) condition(h http.Header, name string) (since time.Time, given bool) {
	lines := h[name]
	if len(lines) != 1 || !t.known() {
		return time.Time{}, false
	}
	since, err := http.ParseTime(lines[0])
	return since, err == nil
}

// unchangedSince reports whether a client that read the place at a time, or has the file with that Last-Modified, has
// this file. An older time of the file is no proof: an older file moves to this place when an earlier file of the array
// is deleted, or when an admin writes the array. So either the date is that of this file, or the object has not been
// written since.
func (t times) unchangedSince(since time.Time) bool {
	return since.Equal(t.uploaded) || !since.Before(t.written)
}
