package httpkit

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/store"
)

func TestPreferredWait(t *testing.T) {
	t.Parallel()
	const limit = 30 * time.Second
	for _, c := range []struct {
		lines []string
		want  time.Duration
	}{
		{nil, 0},
		{[]string{"wait=5"}, 5 * time.Second},
		{[]string{" WAIT = 5 "}, 5 * time.Second},
		{[]string{`wait="5"`}, 5 * time.Second},
		{[]string{`wait="\5"`}, 5 * time.Second},
		{[]string{"respond-async, wait=5"}, 5 * time.Second},
		{[]string{"respond-async", "wait=5"}, 5 * time.Second},
		{[]string{`foo="a, wait=9"; bar, wait=5; x=y`}, 5 * time.Second},
		{[]string{`foo="a\", wait=9", wait=5`}, 5 * time.Second},
		{[]string{"wait=5, wait=7"}, 5 * time.Second},
		{[]string{"wait=x, wait=7"}, 0},
		{[]string{"foo; wait=5"}, 0},
		{[]string{`foo="unfinished, wait=5`}, 0},
		{[]string{"wait=30"}, limit},
		{[]string{"wait=31"}, limit},
		{[]string{"wait=9223372037"}, limit},
		{[]string{"wait=" + strings.Repeat("9", 100)}, limit},
		{[]string{"wait=007"}, 7 * time.Second},
		{[]string{"wait"}, 0},
		{[]string{`wait=""`}, 0},
		{[]string{"wait=-5"}, 0},
		{[]string{"wait=+5"}, 0},
		{[]string{"wait=5s"}, 0},
		{[]string{",,;=,"}, 0},
	} {
		if got := preferredWait(c.lines, limit); got != c.want {
			t.Errorf("%q: %v, want %v", c.lines, got, c.want)
		}
	}
}

func FuzzPreferredWait(f *testing.F) {
	for _, seed := range []string{"wait=5", `a="b\",c";d, wait="7"`, "wait=99999999999999999999", `wait="`, ";=,\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		const limit = 30 * time.Second
		got := preferredWait([]string{line}, limit)
		if got < 0 || got > limit || got%time.Second != 0 {
			t.Errorf("%q: %v", line, got)
		}
		if got != 0 && preferredWait([]string{"first, " + strings.ToUpper(line)}, limit) != got {
			t.Errorf("%q: depends on case or on the preceding preference", line)
		}
		if got == 0 && !strings.Contains(strings.ToLower(line), "wait") &&
			preferredWait([]string{line, "wait=3"}, limit) != 3*time.Second {
			t.Errorf("%q: hides the next line", line)
		}
	})
}

func FuzzParseTags(f *testing.F) {
	for _, seed := range []string{`"17"`, `W/"17", "18"`, "*", ` , "a" ,, "b"`, `"`, `W/`, `*,"1"`, `"a"b`,
		"\"\x7f\""} {
		f.Add(seed, uint64(17))
	}
	f.Fuzz(func(t *testing.T, line string, revision uint64) {
		parsed, err := parseTags("If-Match", []string{line})
		if err != nil {
			if parsed.Given || parsed.any || parsed.list != nil {
				t.Errorf("%q: refused, and yet %+v", line, parsed)
			}
			return
		}
		if parsed.any == (len(parsed.list) > 0) || len(parsed.list) > maxTags {
			t.Fatalf("%q: %+v", line, parsed)
		}
		for _, byCaller := range []bool{false, true} {
			o := store.Stored{Revision: max(revision, 1), Body: []byte(line), ByCaller: byCaller}
			if own, err := parseTags("If-Match", []string{ETag(o)}); err != nil || !own.MatchObject(o) ||
				!own.MatchView(o) {
				t.Errorf("%q is no tag of its object: %v", ETag(o), err)
			}
			if parsed.MatchView(o) && !parsed.any && !strings.Contains(line, strings.TrimSuffix(ETag(o), `"`)) {
				t.Errorf("%q matches %s", line, ETag(o))
			}
		}
		for _, r := range parsed.revisions() {
			if r != 0 && r != unreachable && !strings.Contains(line, `"`+strconv.FormatUint(r, 10)) {
				t.Errorf("%q does not name %d", line, r)
			}
			if parsed.Given && r != unreachable && !parsed.MatchObject(store.Stored{Revision: r}) {
				t.Errorf("%q matches %d on a write alone", line, r)
			}
		}
		// Formatting and parsing it again yields the same.
		var again []string
		if parsed.any {
			again = []string{"*"}
		}
		for _, one := range parsed.list {
			text := `"` + one.value + `"`
			if one.weak {
				text = "W/" + text
			}
			again = append(again, text)
		}
		second, err := parseTags("If-Match", again)
		if err != nil || len(second.list) != len(parsed.list) || second.any != parsed.any {
			t.Errorf("%q: %v, %+v became %+v", line, err, parsed, second)
		}
	})
}

func FuzzIdentity(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "curl/8", "127.0.0.1:5")
	f.Fuzz(func(t *testing.T, trace, agent, remote string) {
		if got := event.TraceParent(trace); got != "" && got != trace {
			t.Errorf("%q became %q", trace, got)
		}
		if got := Truncate(agent, maxUserAgent); len(got) > maxUserAgent || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%q became %q", agent, got)
		}
		_ = peer(remote)
	})
}
