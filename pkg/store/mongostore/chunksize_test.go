package mongostore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"belfry/pkg/errs"
	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// arrayOf is a body with so many entries of a size.
func arrayOf(count, size int) []byte {
	var text strings.Builder
	text.WriteString(`{"books":[`)
	for i := range count {
		if i > 0 {
			text.WriteByte(',')
		}
		uuid := fmt.Sprintf("%07d", i)
		fmt.Fprintf(&text, `{"uuid":%q,"t":%q}`, uuid, strings.Repeat("x", max(0, size-len(`{"uuid":"0000000","t":""}`))))
	}
	text.WriteString(`]}`)
	return []byte(text.String())
}

// TestABodyInChunksFitsInADocument: chunks take more than the entries alone, most for short entries. A body that may be
// too large in chunks is whole, so that it can be written as before.
func TestABodyInChunksFitsInADocument(t *testing.T) {
	t.Parallel()
	arrays := chunk.Arrays{Names: []string{"books"}}
	for _, size := range []int{25, 100, 20_000} {
		head, contents := split(arrays, arrayOf(1<<20/(size+1), size), nil)
		if len(contents) != 1 {
			t.Fatalf("%d arrays are in chunks", len(contents))
		}
		doc, err := bson.Marshal(bson.D{{Key: bodyField, Value: bodyValue(head, contents)}})
		if err != nil {
			t.Fatal(err)
		}
		a := contents[0].Array
		if most := a.Bytes + a.Count*perEntry + a.Chunks*perChunk + 200; len(doc) > most {
			t.Errorf("entries of %d bytes take %d bytes, more than %d", size, len(doc), most)
		}
		a.Count, a.Bytes, a.Chunks = 12<<20/size, 12<<20, 1500
		if got := fits(head, []chunk.Array{a}); got != (size > 25) {
			t.Errorf("12 MiB of entries of %d bytes fit: %v", size, got)
		}
	}
	body := arrayOf(maxInChunks/100_001, 100_000)
	if head, contents := split(arrays, body, nil); len(contents) != 1 || len(head) > 100 {
		t.Error("an array that fits is whole")
	}
	body = arrayOf(maxInChunks/100_001+1, 100_000)
	if head, contents := split(arrays, body, nil); len(contents) != 0 || len(head) != len(body) {
		t.Error("an array that does not fit is in chunks")
	}
}

// TestEntriesMayNotExceedTheLimitOfAWrite: a record has the limit as a whole, however little of it a write changes.
func TestEntriesMayNotExceedTheLimitOfAWrite(t *testing.T) {
	t.Parallel()
	s := backendForErrors(t).store(driver.Spec{Name: "Books", Arrays: []string{"books"}})
	head, contents := split(s.arrays, arrayOf(13<<20/20_001, 20_000), nil)
	doc, err := bson.Marshal(bson.D{{Key: idField, Value: "a"}, {Key: revisionField, Value: revisionText(1)},
		{Key: bodyField, Value: bodyValue(head, contents)}})
	if err != nil {
		t.Fatal(err)
	}
	for size, tooLarge := range map[int]bool{1 << 20: false, 3 << 20: true} {
		kept, err := bodies{s}.chunksIn(doc) // which a change changes
		if err != nil {
			t.Fatal(err)
		}
		entry := driver.Entry{UUID: "new", Value: fmt.Appendf(nil, `{"uuid":"new","t":%q}`, strings.Repeat("x", size))}
		w := driver.Write{UUID: "a", IfRevision: 1, Revision: 2, Body: head, Array: "books", Entries: []driver.Entry{entry}}
		_, err = bodies{s}.changed(doc, kept, &w)
		if errors.Is(err, errs.TooLarge) != tooLarge || err != nil && !tooLarge {
			t.Errorf("an entry of %d bytes: %v", size, err)
		}
	}
}

// TestWhatIsKnownOfArraysIsBounded: however many are read and never written.
func TestWhatIsKnownOfArraysIsBounded(t *testing.T) {
	t.Parallel()
	var r recent
	for i := range 3 * maxRecent {
		r.keep(arrayID{fmt.Sprint(i), "books"}, 7, make(bson.Raw, i*100))
		bytes := 0
		for _, a := range r.known {
			bytes += len(a.doc)
		}
		if len(r.known) > maxRecent || bytes > maxRecentBytes || bytes != r.bytes {
			t.Fatalf("%d arrays of %d bytes are known, counted as %d", len(r.known), bytes, r.bytes)
		}
	}
	id := arrayID{"last", "books"}
	r.keep(id, 7, make(bson.Raw, 100))
	if r.chunks(id) != 7 || len(r.take(id)) != 100 || r.take(id) != nil || r.chunks(id) != 7 {
		t.Error("a document is used never, or twice")
	}
	r.keep(id, 8, make(bson.Raw, maxRecentBytes))
	if r.chunks(id) != 8 || r.take(id) != nil {
		t.Error("a document of any size is kept")
	}
	if r.take(arrayID{"unknown", "books"}) != nil || len(r.known) > maxRecent {
		t.Error("an unknown array is known")
	}
}
