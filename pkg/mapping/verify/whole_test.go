package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
	"belfry/test/model"
)

// Arrays that the configuration wants whole are counted as long as they are in chunks, and a repair makes them whole.
func TestArraysInChunksAreMadeWhole(t *testing.T) {
	mappings := []store.Mapping{{Source: "Books", Target: "Authors", Key: "author", Array: "books",
		Fields: []string{"title"}, Limit: 10_000}}
	backend := model.NewMemory()
	set, err := model.OpenSet(t.Context(), backend, mappings, nil)
	f := &fixture{t, set}
	f.must(err)
	f.save("Authors", "small", `{}`)
	f.save("Authors", "large", `{}`)
	for i := range 600 {
		f.save("Books", fmt.Sprintf("b%03d", i), `{"author":"large","title":"`+strings.Repeat("x", 100)+`"}`)
	}
	f.run(verify.Options{Repair: true, Alone: true})
	if o := f.get("large"); !o.InChunks || f.get("small").InChunks {
		t.Fatalf("an array of %d bytes is in chunks: %v", len(o.Body), o.InChunks)
	}
	if report := f.run(verify.Options{}); report.InChunks != 0 {
		t.Errorf("%d objects are in chunks that should not be", report.InChunks)
	}
	before := f.get("large")

	f.set, err = model.OpenSet(t.Context(), backend, mappings, func(o *store.Options) { o.WholeArrays = true })
	f.must(err)
	if report := f.run(verify.Options{}); report.InChunks != 1 || !report.Clean() {
		t.Errorf("%d objects are in chunks, want 1; %+v", report.InChunks, report.Differences)
	}
	if report := f.run(verify.Options{Repair: true}); report.InChunks != 0 || !report.Clean() {
		t.Errorf("%d objects are left in chunks; %+v", report.InChunks, report.Differences)
	}
	if after := f.get("large"); after.InChunks || string(after.Body) != string(before.Body) {
		t.Errorf("in chunks: %v; the object has changed: %v", after.InChunks, string(after.Body) != string(before.Body))
	}
	if report := f.run(verify.Options{}); report.InChunks != 0 || !report.Clean() {
		t.Errorf("%d objects are in chunks; %+v", report.InChunks, report.Differences)
	}
}

func (f *fixture) get(author string) store.Stored {
	f.Helper()
	o, err := f.set.Store("Authors").Get(f.Context(), author)
	f.must(err)
	return o
}
