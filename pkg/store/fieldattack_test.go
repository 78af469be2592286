package store_test

import (
	"errors"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
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
		{"bob", `{"grade":"the-grade"}`, true}, {"bob", `{"grade":"a guess"}`, true}, {"bob", `{"rank":1}`, false}, {"bob", `{"rank":2}`, true},
		{"eve", `{"grade":"the-grade"}`, false}, {"eve", `{"grade":"a guess"}`, true},
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
		Policy: compile(t, policy.Rules{OwnerField: "user", Get: "object.name != 'hid'"}), ClientUUIDs: true, Schema: compiled, Private: []string{"secret"},
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
		{"bob", "a", `{"diary":{"new":"of-bob"}}`, false, "/diary/new must have at most 5 characters, has 6", ""}, // it is all theirs
		{"bob", "a", `{"name":"long"}`, false, "/name must have at most 3 characters, has 4", ""},
		{"bob", "a", `{"x":1}`, false, "/secret does not fit the schema", "7"},
		{"ada", "a", `{"x":1}`, false, "/secret does not fit the schema", "7"},
		{"bob", "hid", `{"x":1}`, false, "/diary does not fit the schema", "May"},
		{"bob", "hid", `{"name":"long"}`, false, "/name must have at most 3 characters, has 4", ""},
		{"ada", "hid", `{"x":1}`, false, "/diary does not fit the schema", "May"}, // nobody gets it
	} {
		_, err := s.Update(as(t.Context(), of.who), parse(t, of.text), store.UpdateOptions{UUID: of.uuid, Patch: of.patch})
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
