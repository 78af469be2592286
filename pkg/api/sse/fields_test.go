package sse_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/sse"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// A field with a read rule is in the events for those for whom the rule holds for the object in the event and for the
// object as it is when the event is sent.
func TestFieldsOfEventsAreThoseThatTheViewerMayRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule    string
		history []string // of the note n: an object to save, or "delete"
		// by user: the values of the field in the events that are read from the log afterwards
		want map[string][]string
	}{
		"owner": {"isOwner", []string{`{"user":"ada","text":"1"}`, `{"text":"2"}`, "delete"},
			map[string][]string{"ada": {"1", "2", "2"}, "bob": {"-", "-", "-"}, "": {"-", "-", "-"}}},
		"user": {"user.uuid == 'ada'", []string{`{"text":"1"}`, `{"text":"2"}`, "delete"},
			map[string][]string{"ada": {"1", "2", "2"}, "bob": {"-", "-", "-"}, "": {"-", "-", "-"}}},
		"public later": {"object.public == true", []string{`{"public":false,"text":"1"}`, `{"public":true,"text":"2"}`},
			map[string][]string{"": {"-", "2"}}},
		"private later": {"object.public == true",
			[]string{`{"public":true,"text":"1"}`, `{"public":false,"text":"2"}`}, map[string][]string{"": {"-", "-"}}},
		"deleted while it was private": {"object.public == true",
			[]string{`{"public":true,"text":"1"}`, `{"public":false}`, "delete"},
			map[string][]string{"": {"-", "-", "-"}}},
		"deleted while it was public": {"object.public == true", []string{`{"public":true,"text":"1"}`, "delete"},
			map[string][]string{"": {"1", "1"}}},
		"over a private field": {"object.team == 'x'", []string{`{"team":"x","text":"1"}`, `{"text":"2"}`},
			map[string][]string{"": {"-", "2"}}},
		"created again by another": {"isOwner",
			[]string{`{"user":"ada","text":"1"}`, "delete", `{"user":"bob","text":"2"}`},
			map[string][]string{"ada": {"-", "-", "-"}, "bob": {"-", "-", "2"}}},
		"created again by another, who makes it public": {"object.public == true",
			[]string{`{"text":"1"}`, "delete", `{"public":true,"text":"2"}`}, map[string][]string{"": {"-", "-", "2"}}},
		"that can't be evaluated": {"object.nothing == 1", []string{`{"text":"1"}`, "delete"},
			map[string][]string{"": {"-", "-"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.open("Books", nil)
			fields, problems := policy.CompileFields(policy.Rules{OwnerField: "user"},
				map[string]policy.FieldRule{"text": {Read: c.rule}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			s, err := store.Open(t.Context(), w.backend,
				store.Options{Name: "Notes", Fields: fields, Private: []string{"team"}, Outbox: w})
			w.must(err)
			w.stores["Notes"] = s
			w.start()
			for _, step := range c.history {
				if step == "delete" {
					w.delete("Notes", "n")
				} else {
					w.save("Notes", "n", step)
				}
			}
			w.save("Books", "end", `{}`)
			for who, want := range c.want {
				viewer := anonymous()
				if who != "" {
					viewer = user(who)
				}
				e := w.listen(sse.Subscription{After: "0"}, viewer)
				kit.WaitUntil(t, func() error {
					if list := e.received(); len(list) == 0 || list[len(list)-1].data["uuid"] != "end" {
						return errors.New("the last event has not arrived")
					}
					return nil
				})
				var got []string
				for _, m := range e.received() {
					if o, ok := m.data["object"].(map[string]any); ok && m.data["store"] == "Notes" {
						text := "-"
						if o["text"] != nil {
							text = fmt.Sprint(o["text"])
						}
						got = append(got, text)
					}
				}
				if strings.Join(got, " ") != strings.Join(want, " ") {
					t.Errorf("%q receives %v, want %v", who, got, want)
				}
			}
		})
	}
}
