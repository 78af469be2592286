package mapping

import (
	"testing"

	"belfry/pkg/store"
)

const (
	x1 = `{"uuid":"x","t":1}`
	x2 = `{"uuid":"x","t":2}`
	y1 = `{"uuid":"y","t":1}`
	z1 = `{"uuid":"z","t":1}`
)

func encoded(entries ...string) string {
	out := "["
	for i, e := range entries {
		if i > 0 {
			out += ","
		}
		out += e
	}
	return out + "]"
}

func TestArrayKeepsInsertionOrder(t *testing.T) {
	a := parseArray([]byte(encoded(x1, y1)))
	a.set("z", []byte(z1))
	a.set("x", []byte(x2))
	assertArray(t, a, encoded(x2, y1, z1))
	a.remove("x")
	a.remove("none")
	assertArray(t, a, encoded(y1, z1))
	a.set("x", []byte(x1))
	assertArray(t, a, encoded(y1, z1, x1))
}

func TestParseArrayDropsInvalidAndDuplicateEntries(t *testing.T) {
	assertArray(t, parseArray([]byte(encoded(x1, `"y"`, `{"t":1}`, `{"uuid":7}`, `null`, x2, y1))), encoded(x1, y1))
	for _, value := range []string{"", "null", `"x"`, `{"uuid":"x"}`, "[]"} {
		assertArray(t, parseArray([]byte(value)), "[]")
	}
}

func TestPutReportsChanges(t *testing.T) {
	a := parseArray([]byte(encoded(x1)))
	for _, step := range []struct {
		uuid, entry string
		changed     bool
	}{{"x", x1, false}, {"x", x2, true}, {"y", "", false}, {"y", y1, true}, {"x", "", true}, {"x", "", false}} {
		var entry []byte
		if step.entry != "" {
			entry = []byte(step.entry)
		}
		if got := a.put(step.uuid, entry); got != step.changed {
			t.Errorf("put %s %q: changed %v, want %v", step.uuid, step.entry, got, step.changed)
		}
	}
	assertArray(t, a, encoded(y1))
}

func TestTrimKeepsFirstEntries(t *testing.T) {
	a := parseArray([]byte(encoded(x1, y1, z1)))
	a.remove("y")
	if a.trim(&store.Mapping{Limit: 2}) {
		t.Error("trimmed an array that fits")
	}
	if !a.trim(&store.Mapping{Limit: 1}) {
		t.Error("did not trim")
	}
	assertArray(t, a, encoded(x1))
}

func TestAbsentArrayEqualsEmptyArray(t *testing.T) {
	empty := parseArray(nil)
	for value, equal := range map[string]bool{"[]": true, "null": false, encoded(x1): false} {
		if empty.equal([]byte(value)) != equal {
			t.Errorf("equal(%s) = %v", value, !equal)
		}
	}
	if !empty.equal(nil) || parseArray([]byte(encoded(x1))).equal(nil) {
		t.Error("an absent array equals the empty array alone")
	}
}

func TestAnArrayEqualsItsTextAlone(t *testing.T) {
	removed := parseArray([]byte(encoded(x1, y1, z1)))
	removed.remove("x")
	emptied := parseArray([]byte(encoded(x1)))
	emptied.remove("x")
	for text, a := range map[string]*array{encoded(x1, y1): parseArray([]byte(encoded(x1, y1))),
		encoded(y1, z1): removed, "[]": emptied} {
		for _, value := range []string{
			"[]", "[", "]", "null", encoded(x1), encoded(y1), encoded(z1), encoded(x1, y1), encoded(y1, x1),
			encoded(y1, z1), encoded(x2, y1), encoded(x1, y1, z1),
			text + " ", " " + text, text[:len(text)-1], "[" + x1 + y1 + "]", "[" + y1 + z1 + "]",
			"[," + x1 + "," + y1 + "]",
		} {
			if got := a.equal([]byte(value)); got != (value == text) {
				t.Errorf("%s equals %s: %t", text, value, got)
			}
		}
	}
}

func TestOverflowIsStoredPerArray(t *testing.T) {
	body := []byte(`{"_overflow":{"books":[],"films":["x"]}}`)
	if o := readOverflow(body, "films"); !o.equal(overflow{marked: true, unconfirmed: []string{"x"}}) {
		t.Errorf("films: %+v", o)
	}
	if o := readOverflow(body, "songs"); o.marked {
		t.Errorf("songs: %+v", o)
	}
	if got := string(overflow{}.update(body, "films")); got != `{"books":[]}` {
		t.Errorf("without films: %s", got)
	}
	if got := (overflow{}).update([]byte(`{"_overflow":{"books":[]}}`), "books"); got != nil {
		t.Errorf("without any: %s", got)
	}
	if got := string(overflow{marked: true, unconfirmed: []string{"y"}}.update([]byte(`{}`),
		"books")); got != `{"books":["y"]}` {
		t.Errorf("with books: %s", got)
	}
}

func assertArray(t *testing.T, a *array, want string) {
	t.Helper()
	if got := string(a.encode()); got != want {
		t.Errorf("the array is %s, want %s", got, want)
	}
	if n := len(a.uuids()); n != a.live || n != len(a.at) {
		t.Errorf("%d entries, live is %d, index has %d", n, a.live, len(a.at))
	}
}
