package sse_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/sse"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// write writes an object, with null for a field that is removed, or deletes it.
func (w *fixture) write(name, uuid, step string) {
	w.Helper()
	switch {
	case step == "delete":
		w.delete(name, uuid)
	case strings.Contains(step, "null"):
		o, err := object.Parse([]byte(step))
		w.must(err)
		_, err = w.stores[name].Update(w.Context(), o, store.UpdateOptions{UUID: uuid, Patch: true})
		w.must(err)
	default:
		w.save(name, uuid, step)
	}
}

// letters are the initials of the messages about the object n that a client has received: S, U and D for its events, L
// where it has left.
func (e *testClient) letters() (all string) {
	for _, m := range e.received() {
		switch {
		case m.event == sse.Left && m.data["uuid"] == "n":
			all += "L"
			if len(m.data) != 3 {
				e.Errorf("a message says more than who has left: %v", m.data)
			}
		case m.data["uuid"] == "n":
			all += strings.TrimPrefix(m.event, "Store.")[:1]
		case m.event == "reset":
			all += "!"
		}
	}
	return all
}

// hasMark waits until a client has received the object mark with a text.
func (e *testClient) hasMark(text string) {
	e.Helper()
	kit.WaitUntil(e, func() error {
		list := e.received()
		if len(list) == 0 || !strings.Contains(fmt.Sprint(list[len(list)-1].data["object"]), "mark:"+text+" ") {
			return errors.New("the mark " + text + " has not arrived")
		}
		return nil
	})
}

func viewer(who string) *sse.Viewer {
	if who == "" {
		return anonymous()
	}
	return user(who)
}

// withMark lets everyone get the object mark.
func withMark(rules *policy.Rules) *policy.Rules {
	if rules == nil {
		return nil
	}
	marked := *rules
	marked.Get = "has(object.mark) || " + rules.Get
	return &marked
}

var public = &policy.Rules{Get: `object.public == true || user != null && object.user == user.uuid`}

// A stream of some objects is sent the events of those that it has, and left for one that it no longer has: because
// that does not meet the filter any more, or because the user may no longer get it. That holds for the client that is
// connected, and for one that resumes. Nobody learns of an object that they were never allowed to get.
func TestAStreamOfSomeObjectsIsSentWhatEntersStaysAndLeaves(t *testing.T) {
	t.Parallel()
	large := fmt.Sprintf(`"pad":%q`, strings.Repeat("x", 256<<10-200))
	for name, c := range map[string]struct {
		rules   *policy.Rules
		private string
		filter  string   // "": the object is named
		history []string // of the object n
		// by user: what is sent to a client that is connected, to one that resumes from before, and to one that begins
		// with the oldest event
		live, resumed, oldest map[string]string
	}{
		"never meets it": {nil, "", `done != true`, []string{`{"done":true}`, `{"a":1}`, `{"a":2}`, "delete"},
			just(""), nil, nil},
		"meets it": {nil, "", `done != true`, []string{`{"a":1}`, `{"a":2}`, "delete"}, just("SUD"), nil,
			nil},
		"enters": {nil, "", `done != true`, []string{`{"done":true}`, `{"done":false}`, `{"a":1}`},
			just("UU"), nil, nil},
		"leaves and returns": {nil, "", `done != true`, []string{`{"done":false}`, `{"done":true}`, `{"a":1}`,
			`{"done":false}`}, just("SLU"), nil, nil},
		"leaves by a field that is added": {nil, "", `done != true`, []string{`{"a":1}`, `{"done":true}`, `{"a":2}`,
			"delete"},
			just("SL"), nil, nil},
		"leaves by a field that is removed": {nil, "", `has(due)`, []string{`{"due":1}`, `{"due":null}`, `{"a":2}`},
			just("SL"), nil, nil},
		"leaves a level below": {nil, "", `at.city == "Bath"`, []string{`{"at":{"city":"Bath"}}`,
			`{"at":{"city":"York"}}`}, just("SL"), nil, nil},
		"leaves an array": {nil, "", `"x" in tags`, []string{`{"tags":["x"]}`, `{"tags":["y"]}`,
			`{"tags":[]}`}, just("SL"), nil, nil},
		"created again outside": {nil, "", `done != true`, []string{`{"a":1}`, "delete", `{"done":true}`,
			"delete"}, just("SD"), nil, nil},
		"created again within": {nil, "", `done != true`, []string{`{"done":true}`, "delete", `{"a":1}`},
			just("S"), nil, nil},
		"too large, meets it": {nil, "", `a == 1`, []string{`{"a":1,` + large + `}`, `{"b":1}`},
			just("SU"), nil, nil},
		"too large, leaves": {nil, "", `a == 1`, []string{`{"a":1,` + large + `}`, `{"a":2}`, "delete"}, just("SLL"),
			just("L"), just("L")},
		"too large, never meets it": {nil, "", `a == 1`, []string{`{"a":2,` + large + `}`}, just(""), nil, nil},
		"named":                     {nil, "", "", []string{`{"a":1}`, `{"a":2}`, "delete"}, just("SUD"), nil, nil},
		"becomes private": {public, "", "", []string{`{"user":"ada","public":true}`, `{"public":false}`, `{"a":1}`,
			"delete"},
			by("SL", "SUUD", "SL"), by("L", "SUUD", "L"), by("", "SUUD", "")},
		"becomes private by a field that is added": {&policy.Rules{Get: `!has(object.banned)`}, "", "",
			[]string{`{"a":1}`, `{"banned":true}`, `{"a":2}`}, by("SL", "SL", "SL"), by("L", "L", "L"), by("", "", "")},
		"becomes public": {public, "", "", []string{`{"user":"ada"}`, `{"public":true}`, `{"a":1}`},
			by("UU", "SUU", "UU"), nil, nil},
		"is never public": {public, "", "", []string{`{"user":"ada"}`, `{"a":1}`, "delete"}, by("", "SUD", ""), nil,
			nil},
		"is transferred": {public, "", "", []string{`{"user":"ada"}`, `{"user":"bob"}`, `{"a":1}`}, by("", "SL", "UU"),
			by("", "L", "UU"), by("", "", "UU")},
		"is private in a new incarnation": {public, "", "", []string{`{"user":"ada","public":true}`, "delete",
			`{"user":"ada"}`},
			by("SD", "SDS", "SD"), by("L", "SDS", "L"), by("", "SDS", "")},
		"becomes private, and is deleted": {public, "", "", []string{`{"user":"ada","public":true}`,
			`{"public":false}`, "delete"},
			by("SL", "SUD", "SL"), by("L", "SUD", "L"), by("", "SUD", "")},
		"becomes private, but never met it": {public, "", `a == 1`,
			[]string{`{"user":"ada","public":true,"a":2}`, `{"public":false}`, `{"a":3}`}, by("L", "", "L"), by("L",
				"", "L"), by("", "", "")},
		"becomes private and leaves": {public, "", `a == 1`, []string{`{"user":"ada","public":true,"a":1}`,
			`{"public":false,"a":2}`},
			by("SL", "SL", "SL"), by("L", "SL", "L"), by("", "SL", "")},
		"becomes public outside": {public, "", `a == 1`, []string{`{"user":"ada","a":1}`, `{"public":true,"a":2}`,
			`{"a":3}`},
			by("L", "SL", "L"), nil, nil},
		"becomes public outside, where it was": {public, "", `a == 1`, []string{`{"user":"ada","a":2}`,
			`{"public":true,"a":2}`, `{"a":3}`},
			by("L", "", "L"), nil, nil},
		"a rule about users alone": {&policy.Rules{Get: `user != null && user.uuid == "ada"`}, "", `a == 1`,
			[]string{`{"a":1}`, `{"a":2}`, `{"a":3}`, "delete"}, by("", "SL", ""), nil, nil},
		"by a private field": {&policy.Rules{Get: `object.team == user.uuid`}, "team", "",
			[]string{`{"team":"ada"}`, `{"team":"bob"}`}, by("", "S", "U"), by("", "", "U"), by("", "", "U")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.open("Notes", withMark(c.rules), strings.Fields(c.private)...)
			w.start()
			want := sse.Subscription{Stores: []string{"Notes"}, UUIDs: []string{"n", "mark", "nothing"}}
			if c.filter != "" {
				want = sse.Subscription{Stores: []string{"Notes"}, Filter: "has(mark) || (" + c.filter + ")"}
			}
			clients, begun := map[string]*testClient{}, map[string]string{}
			for who := range c.live {
				clients[who] = w.listen(want, viewer(who))
				first := w.listen(want, viewer(who))
				begun[who] = first.sentID()
				first.leave()
			}
			for i, step := range c.history {
				w.write("Notes", "n", step)
				w.save("Notes", "mark", fmt.Sprintf(`{"mark":%d,"z":0}`, i))
				for _, e := range clients {
					e.hasMark(fmt.Sprint(i))
				}
			}
			check := func(when, who string, e *testClient, all ...map[string]string) {
				t.Helper()
				for _, sent := range all {
					if sent != nil {
						if got := e.letters(); got != sent[who] {
							t.Errorf("%s, %q is sent %q, want %q", when, who, got, sent[who])
						}
						return
					}
				}
			}
			last := fmt.Sprint(len(c.history) - 1)
			for who, e := range clients {
				check("live", who, e, c.live)
				for _, buffer := range []int64{16 << 20, 1} { // of 1: from the log
					w.start(func(o *sse.Options) { o.Buffer = buffer })
					want.After = begun[who]
					resumed := w.listen(want, viewer(who))
					resumed.hasMark(last)
					check("resumed", who, resumed, c.resumed, c.live)
					want.After = "0"
					oldest := w.listen(want, viewer(who))
					oldest.hasMark(last)
					check("from the oldest event", who, oldest, c.oldest, c.live)
				}
			}
		})
	}
}

func just(all string) map[string]string { return map[string]string{"": all} }

func by(anonymous, ada, bob string) map[string]string {
	return map[string]string{"": anonymous, "ada": ada, "bob": bob}
}

// sentID is the last id as it was sent.
func (e *testClient) sentID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[len(e.ids)-1]
}

// Several objects of several stores are named; events of others are not sent.
func TestAStreamNamesObjectsOfSeveralStores(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.open("Notes", nil)
	w.start()
	e := w.listen(sse.Subscription{UUIDs: []string{"a", "b", "nothing", "a"}}, anonymous())
	one := w.listen(sse.Subscription{Stores: []string{"Notes"}, Events: []string{"Store.Saved"}, UUIDs: []string{"a"}},
		anonymous())
	for _, uuid := range []string{"a", "c", "b"} {
		w.save("Books", uuid, `{}`)
		w.save("Notes", uuid, `{}`)
		w.save("Notes", uuid, `{"n":1}`)
	}
	e.receives("Store.Saved Books a", "Store.Saved Notes a", "Store.Updated Notes a", "Store.Saved Books b",
		"Store.Saved Notes b", "Store.Updated Notes b")
	one.receives("Store.Saved Notes a")
}

// fields chooses the fields of objects, as in a list.
func TestAStreamHasTheChosenFields(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Notes", nil)
	w.start()
	for fields, want := range map[string]string{
		"title":        "map[title:x uuid:n]",
		"at.city,none": "map[at:map[city:Bath] uuid:n]",
		"uuid":         "map[uuid:n]",
	} {
		for _, s := range []sse.Subscription{{}, {UUIDs: []string{"n"}}, {Filter: "n == 1",
			Stores: []string{"Notes"}}} {
			s.Fields = fields
			e := w.listen(s, anonymous())
			w.save("Notes", "n", `{"n":1,"title":"x","at":{"city":"Bath","street":"y"}}`)
			kit.WaitFor(t, "the event arrives", func() bool { return len(e.received()) > 0 })
			if got := fmt.Sprint(e.received()[0].data["object"]); got != want {
				t.Errorf("%s: %s, want %s", fields, got, want)
			}
			w.delete("Notes", "n")
		}
	}
}

// Many streams with the same filter share its results, and all are sent the same.
func TestStreamsShareTheirFilters(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Notes", nil)
	w.start()
	var clients []*testClient
	for i := range 12 {
		clients = append(clients, w.listen(sse.Subscription{Stores: []string{"Notes"},
			Filter: fmt.Sprintf("n > %d", i%3)}, anonymous()))
	}
	var want [3][]string
	for n := range 300 {
		uuid := fmt.Sprint("n", n)
		w.save("Notes", uuid, fmt.Sprintf(`{"n":%d}`, n%4))
		for i := range want {
			if n%4 > i {
				want[i] = append(want[i], "Store.Saved Notes "+uuid)
			}
		}
	}
	for i, e := range clients {
		e.receives(want[i%3]...)
	}
	if held := sse.FilterResults(w.hub); len(held) != 3 || held[0] == 0 || held[0] > 256 {
		t.Errorf("results are held for these filters: %v", held)
	}
	for _, e := range clients {
		e.leave()
	}
	if held := sse.FilterResults(w.hub); len(held) > 0 {
		t.Errorf("filters of no stream are held: %v", held)
	}
}
