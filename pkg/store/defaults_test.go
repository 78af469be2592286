package store_test

import (
	"strings"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/schema"
)

// Who may not write a field gets its default all the same, and rules see it. What the store maintains has none.
func TestADefaultIsNoFieldThatTheClientWrites(t *testing.T) {
	t.Parallel()
	compiled, err := schema.Compile("it.json", []byte(`{"properties":{
		"state":{"default":"draft"},"uuid":{"default":"mine"},"updated":{"default":"never"},"copies":{"default":[1]},"_internal":{"default":1},"user":{"default":"eve"}}}`), schema.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.Rules{OwnerField: "user", Create: "input.state == 'draft'"}
	allowed, problems := policy.Compile(rules)
	fields, more := policy.CompileFields(rules, map[string]policy.FieldRule{"state": {Write: "false"}})
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	s, err := store.Open(t.Context(), backend, store.Options{
		Name: "Notes", Policy: allowed, Fields: fields, Schema: compiled, Defaults: compiled,
		Arrays: []string{"copies"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := store.WithCall(t.Context(), store.Call{Client: true})
	saved, err := s.Save(ctx, object.Object{}, "")
	if err != nil {
		t.Fatal(err)
	}
	body := string(saved.Body)
	if !strings.Contains(body, `"state":"draft"`) || saved.UUID == "mine" || strings.Contains(body, "never") ||
		strings.Contains(body, "copies") || strings.Contains(body, "eve") {
		t.Errorf("%s", body)
	}
	stored, err := s.Get(t.Context(), saved.UUID)
	if err != nil || strings.Contains(string(stored.Body), "_internal") {
		t.Errorf("%s, %v", stored.Body, err)
	}
	if _, err := s.Save(ctx, object.Object{"state": []byte(`"draft"`)}, ""); err == nil {
		t.Error("a client has written a field that it may not")
	}
}
