package idempotent

import (
	"testing"
	"time"

	"belfry/pkg/store"
)

// The entry of a key that the last release has stored, which reads the same names and types.
func TestTheEntryOfTheLastReleaseIsReadAndWritten(t *testing.T) {
	const text = `{"print":"f","object":"u","revision":"7","earlier":[6],"life":"l","owner":"p","noted":"2026-11-23T03:00:00.000000Z","expires":"2026-11-24T03:00:00.000000Z"}`
	noted := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	x := &Executor{instance: "q", opts: Options{TakeoverDelay: time.Minute}}
	e, err := decodeEntry(store.Stored{Body: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if e.owner != "p" || !x.lease(e).Held(noted.Add(time.Minute-1)) || x.lease(e).Held(noted.Add(time.Minute)) {
		t.Errorf("%+v", e)
	}
	x.lease(e).Claim("q", noted.Add(time.Minute))
	fields := e.fields()
	for name, want := range map[string]string{
		"print": `"f"`, "object": `"u"`, "revision": `"7"`, "earlier": `[6]`, "life": `"l"`, "owner": `"q"`,
		"noted": `"2026-11-23T03:01:00.000000Z"`, "expires": `"2026-11-24T03:00:00.000000Z"`,
	} {
		if got := string(fields[name]); got != want {
			t.Errorf("%s is written as %s, expected %s", name, got, want)
		}
	}
	if len(fields) != 8 {
		t.Errorf("written: %v", fields)
	}
}
