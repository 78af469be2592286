package dynamostore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/backing"
)

// TestAChangeOfAnEntrySendsAChunk measures the requests of a write of a mebibyte, and of a change of one entry.
func TestAChangeOfAnEntrySendsAChunk(t *testing.T) {
	t.Parallel()
	o := shelfOf("red", 1024, 100)
	text := incompressible(1, 1024*1000)
	for i := range o.entries {
		e := &o.entries[i]
		e.Value = fmt.Appendf(nil, `{"uuid":%q,"text":%q}`, e.UUID, text[1000*i:1000*(i+1)])
	}
	changed := o.with(entryOf("e0500", 1000, 1))
	measure := func(open func(*testing.T, driver.Backend) testStore, w driver.Write) int {
		t.Helper()
		g := newProxy(t, backing.Dynoxide(t).URL)
		b := openBackend(t, options(g.url))
		s := open(t, b)
		s.put(write("a", 0, 1, o.body()))
		s.clear()
		closeBackend(t, b)
		b = openBackend(t, options(g.url))
		s = open(t, b)
		s.put(write("other", 0, 1, body())) // the first write reads the catalog
		g.set(nil)
		if w.Array != "" {
			if _, _, _, err := s.Store.(driver.EntryStore).GetEntries(t.Context(), "a", w.Array,
				[]string{w.Entries[0].UUID}); err != nil {
				t.Fatal(err)
			}
		} else if _, _, err := s.Get(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		read := len(g.seen())
		s.put(w)
		closeBackend(t, b)
		ops := g.seen()
		t.Logf("an object of %d bytes: %d bytes sent; reads %q, writes %q", len(o.body()), g.sentBytes(), ops[:read],
			ops[read:])
		return g.sentBytes()
	}
	whole := measure(func(t *testing.T, b driver.Backend) testStore { return openStore(t, b, byColor) },
		write("a", 1, 2, changed.body()))
	again := measure(openArrays, write("a", 1, 2, changed.body()))
	entry := measure(openArrays, changed.changing("a", 1, 2, entryOf("e0500", 1000, 1)))
	if entry > whole/20 || again > whole/20 {
		t.Errorf("%d bytes were sent for an entry, %d for a write of all in chunks, and %d for one without", entry, again,
			whole)
	}
}

// TestSmallObjectsTakeNoMoreRequests counts the requests for objects without chunks, and what reads events of those
// with chunks.
func TestSmallObjectsTakeNoMoreRequests(t *testing.T) {
	t.Parallel()
	g := newProxy(t, backing.Dynoxide(t).URL)
	b := openBackend(t, options(g.url))
	s := openArrays(t, b)
	s.put(write("first", 0, 1, body()))
	expect := func(what string, want string, call func() error) {
		t.Helper()
		g.set(nil)
		if err := call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got := g.seen()
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s takes the requests %q, want %q", what, got, want)
		}
	}
	small := shelfOf("red", 10, 1000)
	put := func(w driver.Write) func() error { return func() error { return s.Put(t.Context(), w) } }
	entries := func() error {
		_, _, _, err := s.Store.(driver.EntryStore).GetEntries(t.Context(), "a", arrayName, []string{"e0001"})
		return err
	}
	expect("a create", "BatchWriteItem PutItem", put(write("a", 0, 1, small.body())))
	expect("a read of entries", "GetItem", entries)
	expect("an update", "UpdateItem", put(write("a", 1, 2, small.body())))
	expect("a read", "GetItem", func() error { _, _, err := s.Get(t.Context(), "a"); return err })
	s.clear()

	large := shelfOf("red", 100, 1000)
	s.put(write("a", 2, 3, large.body()))
	closeBackend(t, b)
	s = openArrays(t, openBackend(t, options(g.url)))
	s.put(write("first", 1, 2, nil))
	s.clear()
	s.wantShelf("a", 3, large)
	expect("a read of entries of a large one", "BatchGetItem GetItem", entries)
	expect("a read of a large one", "GetItem Query", func() error { _, _, err := s.Get(t.Context(), "a"); return err })
	s.put(large.changing("a", 3, 4))
	expect("a search for events", "BatchGetItem"+strings.Repeat(" Query", 8), func() error {
		events, _, err := s.Pending(t.Context(), nil, 10)
		if len(events) != 1 {
			err = fmt.Errorf("%d events, %w", len(events), err)
		}
		return err
	})
}

// TestAnEntryMayExceedAnItem has entries of a mebibyte, so that a chunk takes several items.
func TestAnEntryMayExceedAnItem(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	b := openBackend(t, options(server.URL))
	s := openArrays(t, b)
	o := shelfOf("red", 100, 1000)
	huge := driver.Entry{UUID: "huge"}
	huge.Value = fmt.Appendf(nil, `{"uuid":"huge","text":%q}`, incompressible(1, 1<<20))
	o = o.with(huge)
	s.put(write("a", 0, 1, o.body()))
	s.wantShelf("a", 1, o)
	huge.Value = fmt.Appendf(nil, `{"uuid":"huge","text":%q}`, incompressible(2, 2<<20))
	o = o.with(huge)
	s.put(o.changing("a", 1, 2, huge))
	s.wantShelf("a", 2, o)
	huge.Value = fmt.Appendf(nil, `{"uuid":"huge","text":%q}`, strings.Repeat("x", 17<<20))
	wantKind(t, s.Put(t.Context(), o.changing("a", 2, 3, huge)), errs.TooLarge)
	s.wantShelf("a", 2, o)
	s.clear()
	closeBackend(t, b)
	wantItems(t, server.URL, s, "belfry_Books", "a", 0)
}

// TestOtherVersionsReportChunks: the version before refuses a value that begins with neither i nor o. So does this one
// report arrays that it can't decode, and chunks that are missing, whatever is asked.
func TestOtherVersionsReportChunks(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	b := openBackend(t, options(server.URL))
	s := openArrays(t, b)
	o := shelfOf("red", 150, 700)
	s.put(write("a", 0, 1, o.body()))
	c, table := client(server.URL), aws.String("belfry_Books")
	key := map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "r.a"},
		"s": &types.AttributeValueMemberB{Value: []byte{0}}}
	out, err := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: table, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	value := out.Item["v"].(*types.AttributeValueMemberB).Value
	if value[0] == 'i' || value[0] == 'o' {
		t.Errorf("the value begins with %c, which the version before reads", value[0])
	}
	change := o.changing("a", 1, 2, entryOf("e0001", 700, 1))
	reads := map[string]func() error{
		"Get": func() error { _, _, err := s.Get(t.Context(), "a"); return err },
		"GetEntries": func() error {
			_, _, _, err := s.Store.(driver.EntryStore).GetEntries(t.Context(), "a", arrayName, []string{"e0001"})
			return err
		},
		"Scan": func() error { _, err := s.Scan(t.Context(), nil, 10); return err },
	}
	for end := 17; end < 100; end += 3 {
		out.Item["v"] = &types.AttributeValueMemberB{Value: value[:end]}
		if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: out.Item}); err != nil {
			t.Fatal(err)
		}
		for name, read := range reads {
			if err := read(); errs.KindOf(err) != errs.Internal || !strings.Contains(err.Error(), "a newer version wrote it") {
				t.Errorf("%s of a value of %d bytes: %v", name, end, err)
			}
		}
	}
	out.Item["v"] = &types.AttributeValueMemberB{Value: value}
	if _, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: out.Item}); err != nil {
		t.Fatal(err)
	}
	s.wantShelf("a", 1, o)
	removeChunks(t, c, table)
	s = openArrays(t, openBackend(t, options(server.URL))) // which knows no chunk
	for name, read := range reads {
		if err := read(); errs.KindOf(err) != errs.Internal || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%s without chunks: %v", name, err)
		}
	}
	if err := s.Put(t.Context(), change); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a change of an entry without its chunk: %v", err)
	}
	s.put(write("a", 1, 2, o.body())) // a write of the whole repairs it
	s.wantShelf("a", 2, o)
}

func removeChunks(t *testing.T, c *dynamodb.Client, table *string) {
	t.Helper()
	out, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: table})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range out.Items {
		if !strings.HasPrefix(it["k"].(*types.AttributeValueMemberS).Value, "a.") {
			continue
		}
		key := map[string]types.AttributeValue{"k": it["k"], "s": it["s"]}
		if _, err := c.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: table, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
}
