package store_test

import (
	"fmt"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
	"belfry/test/model"
)

// BenchmarkClient measures what a store adds to its driver for clients: rules of operations and of fields, private
// fields, a mapping and an index.
func BenchmarkClient(b *testing.B) {
	rules, problems := policy.Compile(policy.Rules{OwnerField: "user", Create: "user != null",
		Get: "object.public || isOwner", List: "object.public || isOwner"})
	fields, more := policy.CompileFields(policy.Rules{OwnerField: "user"},
		map[string]policy.FieldRule{"phone": {Read: "isOwner"}})
	if len(problems)+len(more) > 0 {
		b.Fatal(problems, more)
	}
	s, err := store.Open(b.Context(), model.NewMemory(), store.Options{
		Name: "Books", Policy: rules, Fields: fields, Private: []string{"secret"}, Maps: []store.Mapping{books},
		Indexes: []query.Index{{Name: "year", Fields: []string{"year"}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx := store.WithCall(b.Context(),
		store.Call{Client: true, User: parse(b, `{"uuid":"ada"}`), Origin: event.OriginHTTP})
	text := `{"title":"Emma","author":"a","year":%d,"public":true,"phone":"1","secret":"x"}`
	for i := range 100 {
		if _, err := s.Save(b.Context(), parse(b, fmt.Sprintf(text, i)), fmt.Sprintf("b%02d", i)); err != nil {
			b.Fatal(err)
		}
	}
	run := func(name string, op func(i int) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := op(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("get", func(int) error { _, err := s.Get(ctx, "b50"); return err })
	run("list", func(int) error {
		_, err := s.List(ctx, store.ListOptions{Filter: "year >= 0", Limit: 20})
		return err
	})
	run("listByUUID", func(int) error { _, err := s.List(ctx, store.ListOptions{Limit: 20}); return err })
	run("update", func(i int) error {
		_, err := s.Update(b.Context(), parse(b, fmt.Sprintf(`{"n":%d}`, i%10)), store.UpdateOptions{UUID: "b50"})
		return err
	})
	run("create", func(int) error { _, err := s.Save(ctx, parse(b, fmt.Sprintf(text, 1)), ""); return err })
}
