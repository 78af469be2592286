package binarytest

import (
	"bytes"
	"slices"
	"strings"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// documentTests pass for a storage without documents.
func documentTests() []test {
	of := func(run func(*fixture, driver.Documents)) func(*fixture) {
		return func(f *fixture) {
			if d, ok := f.Storage.(driver.Documents); ok {
				run(f, d)
			}
		}
	}
	names := func(f *fixture, d driver.Documents, want ...string) {
		f.Helper()
		got, err := d.DocumentNames(f.ctx)
		f.must(err)
		if !slices.Equal(got, want) {
			f.Errorf("there are the documents %q, want %q", got, want)
		}
	}
	return []test{
		{"documents are stored, replaced, listed in order and deleted", of(func(f *fixture, d driver.Documents) {
			names(f, d)
			f.must(d.DeleteDocument(f.ctx, "b.json"))
			f.must(d.PutDocument(f.ctx, "b.json", []byte("one")))
			f.must(d.PutDocument(f.ctx, "a-B_1", []byte{}))
			f.must(d.PutDocument(f.ctx, "b.json", bytes.Repeat([]byte("two"), 1<<20)))
			names(f, d, "a-B_1", "b.json")
			got, err := d.Document(f.ctx, "b.json")
			f.must(err)
			if !bytes.Equal(got, bytes.Repeat([]byte("two"), 1<<20)) {
				f.Errorf("the document has %d bytes", len(got))
			}
			f.reopen()
			if d, _ = f.Storage.(driver.Documents); d == nil {
				f.Fatal("the reopened storage has no documents")
			}
			f.must(d.DeleteDocument(f.ctx, "b.json"))
			names(f, d, "a-B_1")
			_, err = d.Document(f.ctx, "b.json")
			f.wantKind(err, errs.NotFound)
		})},
		{"documents are no contents", of(func(f *fixture, d driver.Documents) {
			c := random("a", 10)
			f.must(d.PutDocument(f.ctx, c.hash(), []byte("x")))
			f.lists(10)
			f.lacks(c.hash())
			f.put(c)
			f.lists(10, c)
			names(f, d, c.hash())
		})},
		{"a document has a name of one form", of(func(f *fixture, d driver.Documents) {
			for _, name := range []string{"", ".", "..", ".a", "a/b", "../a", "a b", "ä", strings.Repeat("a", 101),
				"a\x00"} {
				f.wantKind(d.PutDocument(f.ctx, name, []byte("x")), errs.Internal)
				_, err := d.Document(f.ctx, name)
				f.wantKind(err, errs.NotFound)
				f.must(d.DeleteDocument(f.ctx, name))
			}
			names(f, d)
		})},
	}
}
