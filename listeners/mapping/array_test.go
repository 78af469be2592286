package mapping

import (
	"testing"
)

const (
	x1 = `{"uuid":"x","t":1}`
	x2 = `{"uuid":"x","t":2}`
	y1 = `{"uuid":"y","t":1}`
	z1 = `{"uuid":"z","t":1}`
)

func stored(entries ...string) string {
	out := "["
	for i, e := range entries {
		if i > 0 {
			out += ","
		}
		out += e
	}
	return out + "]"
}

func TestAnArrayKeepsTheOrderInWhichEntriesCame(t *testing.T) {
	a := parseArray([]byte(stored(x1, y1)))
	a.set("z", []byte(z1))
	a.set("x", []byte(x2))
	holds(t, a, stored(x2, y1, z1))
	a.remove("x")
	a.remove("none")
	holds(t, a, stored(y1, z1))
	a.set("x", []byte(x1))
	holds(t, a, stored(y1, z1, x1))
}

func TestReadingAnArrayDropsWhatIsNoEntry(t *testing.T) {
	holds(t, parseArray([]byte(stored(x1, `"y"`, `{"t":1}`, `{"uuid":7}`, `null`, x2, y1))), stored(x1, y1))
	for _, value := range []string{"", "null", `"x"`, `{"uuid":"x"}`, "[]"} {
		holds(t, parseArray([]byte(value)), "[]")
	}
}

func TestPutTellsChanges(t *testing.T) {
	a := parseArray([]byte(stored(x1)))
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
	holds(t, a, stored(y1))
}

func TestTrimKeepsThoseMappedFirst(t *testing.T) {
	a := parseArray([]byte(stored(x1, y1, z1)))
	a.remove("y")
	if a.trim(2) {
		t.Error("trimmed an array that fits")
	}
	if !a.trim(1) {
		t.Error("did not trim")
	}
	holds(t, a, stored(x1))
}

func TestAbsentIsEmpty(t *testing.T) {
	empty := parseArray(nil)
	for value, same := range map[string]bool{"[]": true, "null": false, stored(x1): false} {
		if empty.same([]byte(value)) != same {
			t.Errorf("same(%s) = %v", value, !same)
		}
	}
	if !empty.same(nil) || parseArray([]byte(stored(x1))).same(nil) {
		t.Error("an absent array is an empty one and no other")
	}
}

func TestOverflowIsKeptForEachArray(t *testing.T) {
	body := []byte(`{"_overflow":{"books":[],"films":["x"]}}`)
	if o := readOverflow(body, "films"); !o.same(overflow{marked: true, refilled: []string{"x"}}) {
		t.Errorf("films: %+v", o)
	}
	if o := readOverflow(body, "songs"); o.marked {
		t.Errorf("songs: %+v", o)
	}
	if got := string(overflow{}.write(body, "films")); got != `{"books":[]}` {
		t.Errorf("without films: %s", got)
	}
	if got := (overflow{}).write([]byte(`{"_overflow":{"books":[]}}`), "books"); got != nil {
		t.Errorf("without any: %s", got)
	}
	if got := string(overflow{marked: true, refilled: []string{"y"}}.write([]byte(`{}`), "books")); got != `{"books":["y"]}` {
		t.Errorf("with books: %s", got)
	}
}

func holds(t *testing.T, a *array, want string) {
	t.Helper()
	if got := string(a.encode()); got != want {
		t.Errorf("the array is %s, want %s", got, want)
	}
	if n := len(a.uuids()); n != a.live || n != len(a.at) {
		t.Errorf("%d entries, live says %d, index %d", n, a.live, len(a.at))
	}
}
