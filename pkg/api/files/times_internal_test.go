package files

import (
	"net/http"
	"testing"
	"time"
)

func TestTimesOfAFile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	date := func(seconds int) string { return at.Add(time.Duration(seconds) * time.Second).Format(http.TimeFormat) }
	revision := uint64(at.Add(100*time.Second + 500*time.Millisecond).UnixMicro())
	file := timesOf("2026-11-21T10:00:00.900001Z", revision)
	for since, want := range map[int]bool{-1: false, 0: true, 1: false, 99: false, 100: true, 101: true, 100000: true} {
		got, given := file.condition(http.Header{"If-Modified-Since": {date(since)}}, "If-Modified-Since")
		if !given || file.unchangedSince(got) != want {
			t.Errorf("%d: %v, %v", since, got, given)
		}
	}
	for _, lines := range [][]string{nil, {}, {""}, {"yesterday"}, {date(0), date(0)}, {"2026-11-21T10:00:00Z"}} {
		if _, given := file.condition(http.Header{"If-Modified-Since": lines}, "If-Modified-Since"); given {
			t.Errorf("%q", lines)
		}
	}
	for now, want := range map[int]string{-5: date(-5), 0: date(0), 5: date(0)} {
		if got := file.header(at.Add(time.Duration(now)*time.Second + time.Millisecond)); got != want {
			t.Errorf("after %d s: %s", now, got)
		}
	}
	if unknown := timesOf("long ago", revision); unknown.known() {
		t.Errorf("%+v", unknown)
	} else if _, given := unknown.condition(http.Header{"If-Modified-Since": {date(0)}}, "If-Modified-Since"); given {
		t.Error("a date is compared with an unknown one")
	}
}
