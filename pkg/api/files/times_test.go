package files_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/files"
	"belfry/pkg/binary"
)

// Dates follow RFC 9110: Last-Modified is when the file was uploaded, tags come before dates, and what is no date is
// ignored.
func TestDatesOfFiles(t *testing.T) {
	t.Parallel()
	now := time.Date(2020, 2, 2, 10, 0, 0, 0, time.UTC)
	l := startLibrary(t, func(o *binary.Options, _ *files.Options) { o.Now = func() time.Time { return now } })
	path, hash := l.add("texts", "one")
	uploaded := now.Format(http.TimeFormat)
	before, after := now.Add(-time.Second).Format(http.TimeFormat),
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	between := now.Add(time.Hour).Format(http.TimeFormat) // when the object was not as it is
	tag, other := `"`+hash+`"`, `"x"`
	for _, c := range []struct {
		headers string // Name: value; ...
		status  int
	}{
		{"If-Modified-Since: " + uploaded, 304},
		{"If-Modified-Since: " + after, 304},
		{"If-Modified-Since: " + before, 200},
		{"If-Modified-Since: " + between, 200},
		{"If-Modified-Since: nonsense", 200},
		{"If-Modified-Since: " + now.Format(time.RFC850), 304},
		{"If-Modified-Since: " + now.Format(time.ANSIC), 304},
		{"If-Unmodified-Since: " + uploaded, 200},
		{"If-Unmodified-Since: " + after, 200},
		{"If-Unmodified-Since: " + before, 412},
		{"If-Unmodified-Since: " + between, 412},
		{"If-Unmodified-Since: nonsense", 200},
		// Tags come first.
		{"If-None-Match: " + tag + "; If-Modified-Since: " + before, 304},
		{"If-None-Match: " + other + "; If-Modified-Since: " + uploaded, 200},
		{"If-Match: " + tag + "; If-Unmodified-Since: " + before, 200},
		{"If-Match: " + other + "; If-Unmodified-Since: " + uploaded, 412},
		// The first pair comes before the second.
		{"If-Unmodified-Since: " + before + "; If-None-Match: " + tag, 412},
		{"If-Unmodified-Since: " + before + "; If-Modified-Since: " + uploaded, 412},
		{"If-Unmodified-Since: " + uploaded + "; If-Modified-Since: " + uploaded, 304},
		{"If-Match: " + tag + "; If-Modified-Since: " + uploaded, 304},
	} {
		var headers []string
		for line := range strings.SplitSeq(c.headers, "; ") {
			name, value, _ := strings.Cut(line, ": ")
			headers = append(headers, name, value)
		}
		for _, method := range []string{"GET", "HEAD"} {
			r := l.Do(method, path, "", headers...)
			if r.StatusCode != c.status {
				t.Errorf("%s with %s: %d, want %d", method, c.headers, r.StatusCode, c.status)
			}
			if c.status != 412 {
				r.HasHeader("Last-Modified", uploaded).HasHeader("Cache-Control", "private, no-cache")
			}
		}
	}
	l.Do("GET", path, "", "Range", "bytes=0-1", "If-Range", uploaded).Want(200)
	l.Do("GET", path, "", "Range", "bytes=0-1").Want(206).HasHeader("Last-Modified", uploaded)
	l.Do("GET", path, "", "Range", "bytes=0-1", "If-Modified-Since", uploaded).Want(304)

	// An older file that moves to the place of a newer one is another file.
	now = now.Add(-time.Hour)
	l.add("texts", "older")
	l.Do("DELETE", path+"/"+hash, "").Want(204)
	if r := l.Do("GET", path, "", "If-Modified-Since", uploaded).Want(200); r.Text != "older" {
		t.Errorf("%q", r.Text)
	}
	l.Do("GET", path, "", "If-Unmodified-Since", uploaded).Want(412)
	// Who may not read the object learns nothing of its dates.
	for _, header := range []string{"If-Modified-Since", "If-Unmodified-Since"} {
		for _, date := range []string{before, after} {
			r := l.Do("GET", "/files/Locked/emma/texts/0", "", header, date).Want(401)
			if got := r.Header.Get("Last-Modified"); got != "" {
				t.Errorf("%s: %s", header, got)
			}
		}
	}
}
