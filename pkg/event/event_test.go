package event_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/object"
)

func TestAppendIsWhatEncodingJSONReads(t *testing.T) {
	actor := "0199-\"quoted\""
	for name, e := range map[string]event.Envelope{
		"empty": {},
		"full": {
			ID: "e1", Event: event.StoreUpdated, Time: "2026-01-02T03:04:05.000006Z", Store: "Books", UUID: "b.1",
			Revision: 1<<63 + 1, Actor: &actor, Origin: event.OriginHTTP,
			Object:   json.RawMessage(`{"uuid":"b.1","n":1.50}`),
			Previous: object.Object{"n": json.RawMessage(`1.25`), "t": json.RawMessage(`null`)},
			Added:    []string{"new", "q\"u"},
			Binaries: json.RawMessage(`{"photos":"files"}`), User: json.RawMessage(`{"uuid":"u"}`),
			Datas: json.RawMessage(`[1]`),
			Arrays: map[string]event.Entries{
				"books": {Set: []json.RawMessage{json.RawMessage(`{"uuid":"x"}`), json.RawMessage(`{"uuid":"y"}`)},
					Removed: []string{"z", "w"}},
				"a \"q\"": {Set: []json.RawMessage{json.RawMessage(`{"uuid":"x"}`)}},
				"films":   {Removed: []string{"x"}},
			},
			Property: "photos", Index: new(int), Record: json.RawMessage(`{"hash":"h"}`),
			Ctx: event.Ctx{Request: "r", Address: "127.0.0.1", UserAgent: "curl\n\"x\"\u2028", Trace: "00-1",
				Wait: "w"},
		},
		"omitted": {ObjectOmitted: true, PreviousOmitted: true, Ctx: event.Ctx{Trace: "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := e.Append(nil)
			var got event.Envelope
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			if !reflect.DeepEqual(got, e) {
				t.Errorf("read back\n%+v, written\n%+v", got, e)
			}
			decoded, err := event.Decode(data)
			if e.ID == "" {
				if err == nil {
					t.Error("an event without an id was decoded")
				}
			} else if err != nil || !reflect.DeepEqual(decoded, e) {
				t.Errorf("decoded %v\n%+v, written\n%+v", err, decoded, e)
			}
		})
	}
}

func TestSubjectKeepsAUUIDInOneToken(t *testing.T) {
	for _, uuid := range []string{"a", "a.b", "john@example.com_email", "a..b.", "x+y-z_"} {
		subject := event.Subject(event.StoreSaved, "Users", uuid)
		tokens := strings.Split(subject, ".")
		if len(tokens) != 6 {
			t.Fatalf("%q: subject %q has %d tokens, want 6", uuid, subject, len(tokens))
		}
		if got := event.FromToken(tokens[5]); got != uuid {
			t.Errorf("token %q reads back as %q, want %q", tokens[5], got, uuid)
		}
	}
}

// Another version of belfry may publish events with more in them, or others.
func TestWhatADecoderDoesNotKnowIsIgnored(t *testing.T) {
	e, err := event.Decode(
		[]byte(`{"id":"e1","event":"Store.Renamed","format":7,"store":"Books","revision":"7","actor":null,"more":{"deep":[1,{"x":null}]},"ctx":{"request":"r","shiny":[{}]}}`))
	if err != nil || e.ID != "e1" || e.Event != "Store.Renamed" || e.Store != "Books" || e.Revision != 7 ||
		e.Ctx.Request != "r" {
		t.Errorf("%+v, %v", e, err)
	}
}

func FuzzDecode(f *testing.F) {
	actor := "a"
	f.Add((&event.Envelope{ID: "e", Event: event.StoreSaved, Actor: &actor, Object: []byte(`{"a":[1]}`)}).Append(nil))
	f.Add([]byte(`{"id":5}`))
	f.Add([]byte(`{"ctx":{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := event.Decode(data)
		if err != nil || !json.Valid(data) {
			return
		}
		again, err := event.Decode(e.Append(nil))
		if err != nil || again.ID != e.ID || again.Revision != e.Revision {
			t.Errorf("%s reads as %+v, and written and read again as %+v, %v", data, e, again, err)
		}
	})
}
