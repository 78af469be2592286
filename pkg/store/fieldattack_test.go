package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/schema"
)

// What an interceptor of get keeps from a caller can't be found out by trying: for them any value is a change.
func TestFieldsThatAnInterceptorHidesAreNotTried(t *testing.T) {
	s, _ := open(t, store.Options{
		Policy: compile(t, policy.Rules{OwnerField: "user"}), ClientUUIDs: true, InterceptsGet: true,
		Fields: fieldsOf(t, map[string]policy.FieldRule{"grade": {Write: "isOwner"}, "rank": {Write: "isOwner"}}),
		Interceptor: intercepting(func(r store.InterceptRequest) object.Object {
			if r.Op != "get" || string(r.Call.User["uuid"]) != `"bob"` {
				return nil
			}
			return object.Object{"grade": []byte("null")}
		}),
	})
	save(t, s, "a", `{"user":"ada","grade":"the-grade","rank":1}`)
	for _, of := range []struct {
		who, text string
		denied    bool
	}{
		{"bob", `{"grade":"the-grade"}`, true}, {"bob", `{"grade":"a guess"}`, true}, {"bob", `{"rank":1}`, false},
		{"bob", `{"rank":2}`, true}, {"eve", `{"grade":"the-grade"}`, false}, {"eve", `{"grade":"a guess"}`, true},
	} {
		for _, patch := range []bool{false, true} {
			_, err := s.Update(as(t.Context(), of.who), parse(t, of.text), store.UpdateOptions{UUID: "a", Patch: patch})
			if errors.Is(err, errs.Denied) != of.denied || !of.denied && err != nil {
				t.Errorf("%s by %s: %v", of.text, of.who, err)
			}
		}
	}
}

// What does not fit the schema in a field that the caller may not read is said without what is in it.
func TestProblemsOfFieldsThatAreHiddenTellNothingOfTheirContent(t *testing.T) {
	compiled, err := schema.Compile("it.json", []byte(`{"properties":{
		"name":{"maxLength":3}, "secret":{"maxLength":3},
		"diary":{"type":"object","maxProperties":2,"additionalProperties":{"type":"string","maxLength":5}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, store.Options{
		Policy: compile(t, policy.Rules{OwnerField: "user", Get: "object.name != 'hid'"}), ClientUUIDs: true,
		Schema: compiled, Private: []string{"secret"},
		Fields: fieldsOf(t, map[string]policy.FieldRule{"diary": {Read: "isOwner"}}),
	})
	// Saved under an earlier schema.
	earlier := s.WithOptions(func(o *store.Options) { o.Schema = nil })
	save(t, earlier, "a", `{"user":"ada","name":"a","secret":"1234567","diary":{"1 May":"1","2 May":"too-long"}}`)
	save(t, earlier, "hid", `{"user":"ada","name":"hid","diary":{"1 May":"1","2 May":"too-long"}}`)
	for _, of := range []struct {
		who, uuid, text string
		patch           bool
		says, hides     string
	}{
		{"ada", "a", `{"x":1}`, false, "/diary/2 May must have at most 5 characters, has 8", ""},
		{"bob", "a", `{"x":1}`, false, "/diary does not fit the schema", "May 5 8"},
		{"bob", "a", `{"diary":{"new":"1"}}`, true, "/diary does not fit the schema", "May 2 3"},
		// it is all theirs
		{"bob", "a", `{"diary":{"new":"of-bob"}}`, false, "/diary/new must have at most 5 characters, has 6", ""},
		{"bob", "a", `{"name":"long"}`, false, "/name must have at most 3 characters, has 4", ""},
		{"bob", "a", `{"x":1}`, false, "/secret does not fit the schema", "7"},
		{"ada", "a", `{"x":1}`, false, "/secret does not fit the schema", "7"},
		{"bob", "hid", `{"x":1}`, false, "/diary does not fit the schema", "May"},
		{"bob", "hid", `{"name":"long"}`, false, "/name must have at most 3 characters, has 4", ""},
		{"ada", "hid", `{"x":1}`, false, "/diary does not fit the schema", "May"}, // nobody gets it
	} {
		_, err := s.Update(as(t.Context(), of.who), parse(t, of.text),
			store.UpdateOptions{UUID: of.uuid, Patch: of.patch})
		var e *errs.Error
		if !errors.As(err, &e) || e.Kind != errs.Invalid {
			t.Fatalf("%s by %s: %v", of.text, of.who, err)
		}
		// Whoever attaches a file makes such an update too.
		_, attached := s.Mutate(as(t.Context(), "bob"), of.uuid, func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: object.Object{"files": []byte("[]")}}, nil
		})
		var found *errs.Error
		if !errors.As(attached, &found) || found.Kind != errs.Invalid {
			t.Fatalf("a mutation: %v", attached)
		}
		for _, f := range found.Fields {
			if f.Message != "does not fit the schema" || strings.Contains(f.Pointer, "May") {
				t.Errorf("a mutation reveals %s %s", f.Pointer, f.Message)
			}
		}
		var all []string
		for _, f := range e.Fields {
			all = append(all, f.Pointer+" "+f.Message)
		}
		text := strings.Join(all, "; ")
		if !strings.Contains(text, of.says) {
			t.Errorf("%s of %s by %s: %s, want %s", of.text, of.uuid, of.who, text, of.says)
		}
		for word := range strings.FieldsSeq(of.hides) {
			of := strings.Join(all, "; ")
			if strings.Contains(strings.ReplaceAll(of, "/name must have at most 3 characters, has 4", ""), word) {
				t.Errorf("it reveals %s: %s", word, of)
			}
		}
	}
}

// A private field is hidden from admins and programs as well, other than fields that rules hide.
func TestProblemsOfFieldsThatArePrivateTellNobodyOfTheirContent(t *testing.T) {
	compiled, err := schema.Compile("it.json", []byte(`{"properties":{
		"secret":{"additionalProperties":{"maxLength":3}}, "diary":{"additionalProperties":{"maxLength":5}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, store.Options{Schema: compiled, Private: []string{"secret"},
		Fields: fieldsOf(t, map[string]policy.FieldRule{"diary": {Read: "isOwner"}}),
		Policy: compile(t, policy.Rules{OwnerField: "user"})})
	text := `{"user":"ada","secret":{"1 May":"too-long"},"diary":{"2 May":"too-long"}}`
	save(t, s.WithOptions(func(o *store.Options) { o.Schema = nil }), "a", text)
	stored, err := s.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	program := store.WithCall(t.Context(), store.Call{Client: true, Trusted: true})
	_, updated := s.Update(program, parse(t, `{"x":1}`), store.UpdateOptions{UUID: "a"})
	_, mutated := s.Mutate(program, "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: object.Object{"files": []byte("[]")}}, nil
	})
	checked := s.Rules().Concealed(s.Check(t.Context(), parse(t, text), "b"))
	report, err := s.CheckSchema(t.Context(), compiled, nil)
	if err != nil || len(report.First) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	mismatch, err := s.SchemaMismatch(t.Context(), stored)
	if err != nil || mismatch == nil {
		t.Fatal(mismatch, err)
	}
	found := map[string][]errs.Field{"a report": report.First[0].Errors, "a mismatch": mismatch.Errors}
	for name, err := range map[string]error{"an update": updated, "a mutation": mutated, "a check": checked} {
		var e *errs.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", name, err)
		}
		found[name] = e.Fields
	}
	want := []errs.Field{{Pointer: "/diary/2 May", Message: "must have at most 5 characters, has 8",
		Keyword: "maxLength"}, {Pointer: "/secret", Message: "does not fit the schema"}}
	for name, fields := range found {
		slices.SortFunc(fields, func(a, b errs.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
		if !slices.Equal(fields, want) {
			t.Errorf("%s says %v", name, fields)
		}
	}
}

// However many objects fail, and however long the names of their properties are, a report stays small.
func TestAReportOfASchemaIsBounded(t *testing.T) {
	compiled, err := schema.Compile("it.json",
		[]byte(`{"additionalProperties":{"additionalProperties":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, store.Options{Schema: compiled})
	earlier := s.WithOptions(func(o *store.Options) { o.Schema = nil })
	for i := range 505 {
		text := `{"x":{"y":1}}`
		if i < 20 {
			text = `{"` + strings.Repeat("é", 10_000) + `":{"a":1,"b":2}}`
		}
		save(t, earlier, fmt.Sprintf("%03d", i), text)
	}
	var pages []int
	report, err := s.CheckSchema(t.Context(), compiled, func(r store.SchemaReport) error {
		pages = append(pages, r.Objects)
		return nil
	})
	if err != nil || report.Objects != 505 || report.Failing != 505 || len(report.First) != 10 ||
		!slices.Equal(pages, []int{500, 505}) {
		t.Errorf("%+v, %v, after %v", report, err, pages)
	}
	text, err := json.Marshal(report)
	if err != nil || len(text) > 10_000 || !utf8.Valid(text) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	stop := errors.New("enough")
	if _, err := s.CheckSchema(t.Context(), compiled, func(store.SchemaReport) error { return stop }); !errors.Is(err,
		stop) {
		t.Errorf("a check that is stopped: %v", err)
	}
}
