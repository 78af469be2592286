package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/listener"
)

func numbered(from, to int) []*listener.Event {
	var all []*listener.Event
	for i := from; i < to; i++ {
		e := event.Envelope{ID: fmt.Sprintf("e-%d", i), Event: event.StoreSaved, Store: "Books", UUID: "b",
			Object: []byte("{\"n\":\n1}")}
		all = append(all, &listener.Event{Envelope: e, Sequence: uint64(i)})
	}
	return all
}

// filled is a log of 10 events, closed.
func filled(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l := opened(t, path)
	must(t, l.add(numbered(0, 6)))
	must(t, l.add(numbered(4, 10))) // 4 and 5 are redelivered
	must(t, l.add(append(numbered(9, 10), numbered(9, 10)...)))
	closed(t, l)
	return path
}

func opened(t *testing.T, path string) *log {
	t.Helper()
	l, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closed(t *testing.T, l *log) {
	t.Helper()
	if err := l.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.lock.Close(); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, failed []error) {
	t.Helper()
	for _, err := range failed {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestChangesOfTheLogAreDetected(t *testing.T) {
	path := filled(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))[:10]
	without := func(n int) []byte { return bytes.Join(append(append([][]byte{}, lines[:n]...), lines[n+1:]...), nil) }
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"nothing": {string(whole), ""},
		"a line changed": {strings.Replace(string(whole), `"sequence":4`, `"sequence":5`, 1),
			"line 5 does not match the line before it"},
		"a hash changed": {strings.Replace(string(whole), begin, begin+"0", 1),
			"line 1 does not match the line before it"},
		"the last one changed": {strings.Replace(string(whole), `"e-9"`, `"e-8"`, 1),
			"line 10 does not match the line before it"},
		"the first one gone": {string(without(0)), "line 1 does not match the line before it"},
		"one gone":           {string(without(3)), "line 4 does not match the line before it"},
		"one twice":          {string(whole) + string(lines[9]), "line 11 does not match the line before it"},
		"an empty line":      {string(whole) + "\n", "line 11 is not a line"},
		"something else":     {string(whole) + "hello\n", "line 11 is not a line"},
		"a very long line":   {string(whole) + strings.Repeat("x", maxLine+1), "line 11 is longer"},
		"the end gone":       {string(whole[:len(whole)-len(lines[9])]), ""}, // only an earlier head detects it
		"half a line":        {string(whole[:len(whole)-7]), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scan(strings.NewReader(c.text), func(line) {})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, not %q", err, c.want)
			}
		})
	}
}

func TestEarlierHeadDetectsATruncatedLog(t *testing.T) {
	path := filled(t)
	l := opened(t, path)
	head, size := l.head, l.size
	closed(t, l)
	if code := verify(path, head); code != 0 {
		t.Errorf("the whole log: %d", code)
	}
	if err := os.Truncate(path, size/2); err != nil {
		t.Fatal(err)
	}
	if code := verify(path, ""); code != 0 {
		t.Errorf("without the head: %d", code)
	}
	if code := verify(path, head); code != 1 {
		t.Errorf("with the head: %d", code)
	}
}

func TestLogIsContinuedAfterACrash(t *testing.T) {
	path := filled(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-20); err != nil {
		t.Fatal(err)
	}
	l := opened(t, path)
	if l.lines != 9 {
		t.Errorf("%d lines", l.lines)
	}
	must(t, l.add(numbered(0, 12)))
	if l.lines != 12 {
		t.Errorf("%d lines", l.lines)
	}
	if _, err := open(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	closed(t, l)
	if code := verify(path, l.head); code != 0 {
		t.Error(code)
	}
}

func TestMissingFolderIsNotReportedAsALock(t *testing.T) {
	_, err := open(filepath.Join(t.TempDir(), "none", "log"))
	if err == nil || strings.Contains(err.Error(), "another process") {
		t.Errorf("it says %v", err)
	}
}

// A partial write, for instance to a full disk, is removed before the next one.
func TestFailedWriteIsRemoved(t *testing.T) {
	path := filled(t)
	l := opened(t, path)
	if _, err := l.file.WriteString(`{"hash":"half`); err != nil {
		t.Fatal(err)
	}
	l.dirty = true
	must(t, l.add(numbered(10, 11)))

	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	writable := l.file
	l.file = readOnly
	for _, err := range l.add(numbered(10, 13))[1:] { // 10 is there
		if err == nil {
			t.Error("what could not be written was acknowledged")
		}
	}
	l.file = writable
	must(t, l.add(numbered(10, 13)))
	closed(t, l)
	if s := l.lines; s != 13 || verify(path, l.head) != 0 {
		t.Errorf("%d lines", s)
	}
}

func TestDeduplicationIsBounded(t *testing.T) {
	l := &log{recent: map[string]bool{}}
	for i := range 5 * remembered {
		l.remember(fmt.Sprint(i))
	}
	if n := len(l.recent) + len(l.older); n > 2*remembered || !l.recent[fmt.Sprint(5*remembered-1)] {
		t.Errorf("%d are remembered", n)
	}
}
