package files

import (
	"net/http"
	"time"
)

// times are when a file and its object were last written, in the seconds that dates of HTTP have.
type times struct {
	uploaded time.Time // zero: unknown
	written  time.Time // its object
}

// timesOf returns the times of a record that was created at a time in an object at a revision, which is a clock reading.
func timesOf(created string, revision uint64) times {
	uploaded, err := time.Parse(time.RFC3339Nano, created)
	if err != nil {
		return times{}
	}
	return times{uploaded.UTC().Truncate(time.Second), time.UnixMicro(int64(revision)).UTC().Truncate(time.Second)} //nolint:gosec // a time
}

func (t times) known() bool { return !t.uploaded.IsZero() }

// header returns the Last-Modified of a reply that is sent now. It is never in the future, where another process's clock
// may be (RFC 9110, 8.8.2.1).
func (t times) header(now time.Time) string {
	if t.uploaded.After(now) {
		return now.UTC().Format(http.TimeFormat)
	}
	return t.uploaded.Format(http.TimeFormat)
}

// condition returns the date of a precondition. One that is not a date is ignored, as RFC 9110 demands, and so is one
// about a file whose time is unknown.
func (t times) condition(h http.Header, name string) (since time.Time, given bool) {
	lines := h[name]
	if len(lines) != 1 || !t.known() {
		return time.Time{}, false
	}
	since, err := http.ParseTime(lines[0])
	return since, err == nil
}

// unchangedSince reports whether a client that read what is at the place at a time, or has the file of that Last-Modified,
// has this file. That the file is older proves nothing: when an earlier one of the array is deleted, or the array
// is written by an admin, an older file moves to its place. So either the date is that of this file, or
// nothing of the object has been written since.
func (t times) unchangedSince(since time.Time) bool {
	return since.Equal(t.uploaded) || !since.Before(t.written)
}
