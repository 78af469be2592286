package mapping_test

import (
	"strings"
	"testing"

	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit/hardtext"
)

// old puts a record as belfry wrote it when strings were stored as they were sent.
func (f *fixture) old(name, uuid, body string) {
	f.Helper()
	_, err := store.NewWorker(f.set.Store(name)).CopyRecord(f.Context(),
		driver.Record{UUID: uuid, Revision: 1, Body: []byte(body)}, nil)
	f.must(err)
}

func (f *fixture) revision(name, uuid string) uint64 {
	f.Helper()
	o, err := f.set.Store(name).Get(f.Context(), uuid)
	f.must(err)
	return o.Revision
}

// TestArraysOfOldRecordsAreNotWrittenForTheirEscapes: an array whose entries have escapes that are not written any more
// equals one without them. It is written when an entry changes, and then all of it has one form.
func TestArraysOfOldRecordsAreNotWrittenForTheirEscapes(t *testing.T) {
	texts := hardtext.All()
	for name, encode := range hardtext.Encoders() {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, len(texts)+1)
			var books, entries, stored []string
			for i, text := range texts {
				uuid := "x" + strings.Repeat("i", i)
				if len(uuid) > 100 {
					break
				}
				f.old("Books", uuid, `{"uuid":"`+uuid+`","author":"\u0061","title":`+encode(text)+`}`)
				books = append(books, uuid)
				entries = append(entries, `{"uuid":"`+uuid+`","title":`+encode(text)+`}`)
				stored = append(stored, `{"uuid":"`+uuid+`","title":`+string(object.AppendString(nil, text))+`}`)
			}
			f.old("Authors", "a", `{"uuid":"a","books":[`+strings.Join(entries, ",")+`]}`)
			f.reconcile(books...)
			f.must(f.reconciler.Backfill(f.Context(), f.mapping, "a"))
			if got := f.revision("Authors", "a"); got != 1 {
				t.Errorf("the array was written, at revision %d", got)
			}
			for _, when := range []string{"before", "after"} {
				report, err := verify.Run(f.Context(), f.set, verify.Options{})
				f.must(err)
				if !report.Clean() || report.Entries != int64(len(books)) {
					t.Errorf("%s the write: %d entries, %+v", when, report.Entries, report.Differences)
				}
				if when == "before" {
					f.update("Books", books[0], `{"title":"new\/"}`)
					f.reconcile(books[0])
					stored[0] = `{"uuid":"x","title":"new/"}`
					f.field("books", "["+strings.Join(stored, ",")+"]")
				}
			}
		})
	}
}

// TestALimitOfBytesCountsTextsAsTheyAreStored: whether an object has an entry does not depend on who encoded it, or the
// entries beside it.
func TestALimitOfBytesCountsTextsAsTheyAreStored(t *testing.T) {
	for name, encode := range hardtext.Encoders() {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 100)
			title := "中文/中文"
			entry := len(`{"uuid":"x","title":""},`) + len(title)
			// An array takes a further entry up to 2 of them.
			f.mapping.MaxEntry, f.mapping.MaxBytes = entry-1, 3*entry-2
			f.old("Authors", "a", `{"uuid":"a","books":[{"uuid":"x","title":`+encode(title)+`}]}`)
			f.old("Books", "x", `{"uuid":"x","author":"a","title":`+encode(title)+`}`)
			f.save("Books", "y", `{"author":"a","title":`+encode(title)+`}`)
			f.save("Books", "z", `{"author":"a","title":`+encode(title)+`}`)
			f.save("Books", "large", `{"author":"a","title":`+encode(title+"!")+`}`)
			f.reconcile("x", "y", "z", "large")
			f.field("books", `[{"uuid":"x","title":"`+title+`"},{"uuid":"y","title":"`+title+`"}]`)
		})
	}
}
