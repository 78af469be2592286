package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
	"belfry/pkg/store/schema"
	"belfry/test/kit/hardtext"
)

// old puts a record as belfry wrote it when strings were stored as they were sent.
func old(t *testing.T, s *store.Store, uuid, body string) {
	t.Helper()
	if _, err := store.NewWorker(s).CopyRecord(t.Context(), driver.Record{UUID: uuid, Revision: 1, Body: []byte(body)},
		nil); err != nil {
		t.Fatal(err)
	}
}

// TestEveryWayInStoresStringsInOneForm: clients, the program, workers, defaults, computed fields and interceptors.
func TestEveryWayInStoresStringsInOneForm(t *testing.T) {
	compiled, err := schema.Compile("it.json", []byte(`{"properties":{
		"preset":{"default":"\u00e9\/<"},"list":{"items":{"properties":{"preset":{"default":"\u00e9\/<"}}}}}}`),
		schema.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	const sent, want = `"\u00e9\/\u003c"`, `"é/<"`
	raw := json.RawMessage(sent)
	amend := &amending{object.Object{"amended": raw}}
	s, out := open(t, store.Options{
		Interceptor: amend, Defaults: compiled, Arrays: []string{"copies"},
		Computed: computed(t, map[string]string{"twice": "text + text"}),
	})
	check := func(fields ...string) {
		t.Helper()
		o, err := s.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(o.Body), `\`) || strings.Contains(string(out.last().Object), `\`) {
			t.Errorf("stored %s, published %s", o.Body, out.last().Object)
		}
		for _, field := range fields {
			is(t, o.Body, map[string]string{field: want})
		}
	}
	must := func(_ store.Stored, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := client(t.Context())
	must(s.Save(ctx, object.Object{"text": raw, "list": json.RawMessage(`[{},{"preset":` + sent + `}]`)}, "a"))
	check("text", "preset", "amended")
	o, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	is(t, o.Body, map[string]string{"twice": `"é/<é/<"`, "list": `[{"preset":` + want + `},{"preset":` + want + `}]`})

	amend.patch = nil
	must(s.Update(ctx, object.Object{"put": raw}, store.UpdateOptions{UUID: "a"}))
	must(s.Update(ctx, object.Object{"deep": json.RawMessage(`{"\u0061":{"b":` + sent + `}}`)},
		store.UpdateOptions{UUID: "a", Patch: true}))
	must(s.Update(ctx, object.Object{"deep": json.RawMessage(`{"a":{"c":` + sent + `}}`)},
		store.UpdateOptions{UUID: "a", Patch: true}))
	must(s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: object.Object{"mutated": raw}}, nil
	}))
	base, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	must(store.NewWorker(s).CompareAndSet(t.Context(), base,
		object.Object{"copies": json.RawMessage(`[` + sent + `]`)}))
	check("put", "mutated")
	must(s.Update(t.Context(), object.Object{"own": raw}, store.UpdateOptions{UUID: "a"}))
	check("put", "mutated", "own")
	if o, err = s.Get(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	is(t, o.Body, map[string]string{"deep": `{"a":{"b":` + want + `,"c":` + want + `}}`, "copies": `[` + want + `]`})
}

// TestAnOldRecordIsRewrittenByItsNextWrite, of which the event names as changed what has changed in value alone.
func TestAnOldRecordIsRewrittenByItsNextWrite(t *testing.T) {
	s, out := open(t, store.Options{Name: "Books"})
	old(t, s, "a", `{"uuid":"a","k\u00e9y":"\u0061","n":1.50,"o":{"\u0062":"\/"},"plain":"x"}`)
	o, err := s.Get(t.Context(), "a")
	if err != nil || o.Revision != 1 {
		t.Fatalf("at revision %d, %v", o.Revision, err)
	}
	if _, err := s.Update(client(t.Context()), parse(t, `{"plain":"y","kéy":"a"}`),
		store.UpdateOptions{UUID: "a", If: 1}); err != nil {
		t.Fatal(err)
	}
	if o, err = s.Get(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	is(t, o.Body, map[string]string{"kéy": `"a"`, "n": "1.50", "o": `{"b":"/"}`, "plain": `"y"`})
	if strings.Contains(string(o.Body), `\`) {
		t.Errorf("stored %s", o.Body)
	}
	// And updated, which it lacked.
	if previous := out.last().Previous; len(previous) != 2 || string(previous["plain"]) != `"x"` {
		if _, had := previous["kéy"]; had || previous["o"] != nil {
			t.Errorf("changed, by the event: %s", previous)
		}
	}
}

// TestLimitsCountTextsAsTheyAreStored: what a store takes does not depend on the encoder of the client.
func TestLimitsCountTextsAsTheyAreStored(t *testing.T) {
	text := strings.Repeat("中/", 50)
	most := len(`{"uuid":"a","text":""}`) + len(text)
	for name, encode := range hardtext.Encoders() {
		for _, c := range []struct {
			max     int
			refused bool
		}{{most, false}, {most - 1, true}} {
			s, _ := open(t, store.Options{MaxSize: c.max})
			_, err := s.Save(client(t.Context()), object.Object{"text": json.RawMessage(encode(text))}, "a")
			if errors.Is(err, errs.TooLarge) != c.refused || err != nil && !c.refused {
				t.Errorf("%s, at most %d: %v", name, c.max, err)
			}
			old(t, s, "b", `{"uuid":"b","text":`+encode(text)+`}`)
			_, err = s.Update(client(t.Context()), parse(t, `{}`), store.UpdateOptions{UUID: "b"})
			if errors.Is(err, errs.TooLarge) != c.refused || err != nil && !c.refused {
				t.Errorf("an old record by %s, at most %d: %v", name, c.max, err)
			}
		}
	}
}

// TestObjectsAreFoundByTextsInAnyEncoding: what one encoder has written, another one finds, by ==, in, elements and
// beginnings.
func TestObjectsAreFoundByTextsInAnyEncoding(t *testing.T) {
	s, _ := open(t,
		store.Options{Indexes: []query.Index{query.NewIndex([]string{"text"}), query.NewIndex([]string{"tags[]"})}})
	encoders := hardtext.Encoders()
	for _, text := range hardtext.All() {
		for name, encode := range encoders {
			literal := encode(text)
			o, err := s.Save(t.Context(), parse(t, `{"text":`+literal+`,"tags":[`+literal+`]}`), "")
			if err != nil {
				t.Fatalf("%q by %s: %v", text, name, err)
			}
			for other, encode := range encoders {
				literal := encode(text)
				for _, filter := range []string{"text == " + literal, "text in [" + literal + "]", literal + " in tags",
					"text.startsWith(" + literal + ")", literal + " == object.text"} {
					if len(filter) > 4<<10 {
						continue
					}
					page, err := s.List(t.Context(), store.ListOptions{Filter: filter, Sort: "", Limit: 500})
					if err != nil {
						t.Fatalf("%q by %s: %s: %v", text, other, filter, err)
					}
					found := false
					for _, one := range page.Objects {
						found = found || one.UUID == o.UUID
					}
					if !found {
						t.Errorf("%q by %s is not found by %s: %s", text, name, other, filter)
					}
				}
			}
			if err := s.Delete(t.Context(), o.UUID, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}
