package chunk_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/chunk"
	"belfry/pkg/store/driver"
)

// entryOf is an entry of about so many bytes.
func entryOf(uuid string, size int) []byte {
	return fmt.Appendf(nil, `{"uuid":%q,"title":%q}`, uuid, strings.Repeat("x", max(0, size-len(uuid)-23)))
}

func arrayOf(entries [][]byte) string {
	return "[" + string(bytes.Join(entries, []byte(","))) + "]"
}

// many are so many entries of 100 bytes.
func many(count int) (entries [][]byte) {
	for i := range count {
		entries = append(entries, entryOf(fmt.Sprintf("e-%05d", i), 100))
	}
	return entries
}

func TestWhatIsSplitIsJoinedAsItWas(t *testing.T) {
	large := arrayOf(many(1000))
	for name, c := range map[string]struct {
		body   string
		chunks []string // the arrays that are in chunks
	}{
		"small":                  {`{"books":` + arrayOf(many(10)) + `}`, nil},
		"large":                  {`{"books":` + large + `}`, []string{"books"}},
		"between others":         {`{"a":1,"books":` + large + `,"c":[{"uuid":"x"}]}`, []string{"books"}},
		"two":                    {`{"films":` + large + `,"books":` + large + `}`, []string{"films", "books"}},
		"with spaces around":     {`{ "books" : ` + large + ` , "z" : null }`, []string{"books"}},
		"with spaces in between": {`{"books":` + strings.ReplaceAll(large, "},{", "}, {") + `}`, nil},
		"one uuid twice":         {`{"books":` + arrayOf(append(many(1000), entryOf("e-00001", 100))) + `}`, nil},
		"an element without":     {`{"books":` + arrayOf(append(many(1000), []byte(`{"title":"x"}`))) + `}`, nil},
		"an element of no form":  {`{"books":` + arrayOf(append(many(1000), []byte(`7`))) + `}`, nil},
		"an old escape":          {`{"books":` + strings.Replace(large, `"e-`, `"\u0065-`, 1) + `}`, nil},
		"a line break in a text": {`{"books":` + strings.Replace(large, "xx", `\n`, 1) + `}`, []string{"books"}},
		"no array":               {`{"books":"` + strings.Repeat("x", 1<<17) + `"}`, nil},
		"an object":              {`{"books":{"x":"` + strings.Repeat("x", 1<<17) + `"}}`, nil},
		"an array of none":       {`{"films":` + large + `,"books":[]}`, []string{"films"}},
		"another field":          {`{"others":` + large + `}`, nil},
		"a name with an escape":  {`{"bo\u006fks":` + large + `}`, []string{"books"}},
		"not even an object":     {strings.Repeat("x", 1<<17), nil},
	} {
		t.Run(name, func(t *testing.T) {
			head, arrays := chunk.Arrays{Names: []string{"books", "films", "absent"}}.Split([]byte(c.body), nil)
			var names []string
			for _, a := range arrays {
				names = append(names, a.Name)
			}
			if !slices.Equal(names, c.chunks) {
				t.Fatalf("%q are in chunks, want %q", names, c.chunks)
			}
			if len(arrays) > 0 && len(head) > 200 {
				t.Errorf("the head still has %d bytes", len(head))
			}
			decoded, err := chunk.Decode(chunk.Encode(chunk.Described(arrays)))
			if err != nil || !slices.Equal(decoded, chunk.Described(arrays)) {
				t.Fatalf("decoded %+v, %v; want %+v", decoded, err, chunk.Described(arrays))
			}
			joined, err := chunk.Join(head, arrays)
			if err != nil || string(joined) != c.body {
				t.Fatalf("joined it is another body (%v): %.200s", err, joined)
			}
		})
	}
}

// kept is a record whose array is in chunks, as a backend keeps it.
type kept struct {
	head   []byte
	arrays []chunk.Content
}

func (k *kept) read(n int) ([]byte, error) { return k.arrays[0].Data[n], nil }

// TestEntriesAreReadAndChanged makes random changes of entries, and writes of the whole array, beside an array in
// memory.
func TestEntriesAreReadAndChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	order := many(1000)
	uuid := func(entry []byte) string { return string(entry[len(`{"uuid":"`) : len(`{"uuid":"`)+7]) }
	k := &kept{}
	k.head, k.arrays = chunk.Arrays{Names: []string{"books"}}.Split([]byte(`{"books":`+arrayOf(order)+`,"title":"T"}`), nil)
	for step := range 300 {
		if step%40 == 39 { // the record is written whole
			last := order[len(order)-1]
			if step%80 == 79 { // in another order
				order = append([][]byte{last}, order[:len(order)-1]...)
			}
			body := []byte(`{"books":` + arrayOf(order) + `,"title":"U"}`)
			before := k.arrays
			k.head, k.arrays = chunk.Arrays{Names: []string{"books"}}.Split(body, before)
			if n := len(k.arrays[0].Changed(before)); step%80 != 79 && n != 0 {
				t.Fatalf("step %d: %d chunks of the same array differ", step, n)
			}
		}
		var changes []driver.Entry
		for range 1 + random.IntN(5) {
			at := random.IntN(len(order))
			e := driver.Entry{UUID: uuid(order[at])}
			isIn := func(c driver.Entry) bool { return c.UUID == e.UUID }
			switch random.IntN(3) {
			case 0:
				e.UUID = fmt.Sprintf("n-%05d", random.IntN(100_000))
				if slices.ContainsFunc(changes, isIn) || slices.ContainsFunc(order,
					func(o []byte) bool { return uuid(o) == e.UUID }) {
					continue
				}
				e.Value = entryOf(e.UUID, 50+random.IntN(100))
				order = append(order, e.Value)
			case 1:
				if slices.ContainsFunc(changes, isIn) {
					continue
				}
				order = slices.Delete(order, at, at+1)
			default:
				if slices.ContainsFunc(changes, isIn) {
					continue
				}
				e.Value = entryOf(e.UUID, 50+random.IntN(100))
				order[at] = e.Value
			}
			changes = append(changes, e)
		}
		after, chunks, err := k.arrays[0].Change(changes, k.read)
		if err != nil {
			t.Fatal(err)
		}
		if len(chunks) > len(changes) {
			t.Fatalf("%d changes of entries changed %d chunks", len(changes), len(chunks))
		}
		k.arrays[0].Array, k.arrays[0].Data = after, slices.Clone(k.arrays[0].Data)
		for n, data := range chunks {
			k.arrays[0].Data[n] = data
		}
		want := `"books":` + arrayOf(order)
		if joined, err := chunk.Join(k.head, k.arrays); err != nil || !bytes.Contains(joined, []byte(want)) {
			t.Fatalf("step %d: %v, or another array", step, err)
		}
		some := order[random.IntN(len(order))]
		found, err := k.arrays[0].Some([]string{uuid(some), "absent"}, k.read)
		if err != nil || len(found.Values) != 1 || !bytes.Equal(found.Values[uuid(some)], some) {
			t.Fatalf("step %d: found %v (%v), want %s", step, slices.Collect(maps.Keys(found.Values)), err, some)
		}
		if found.Count != len(order) || found.Bytes != len(arrayOf(order))-1 {
			t.Fatalf("step %d: %d entries of %d bytes, want %d of %d", step, found.Count, found.Bytes, len(order),
				len(arrayOf(order))-1)
		}
	}
}

func TestAnArrayHasMoreChunksAsItGrows(t *testing.T) {
	_, small := chunk.Arrays{Names: []string{"books"}}.Split([]byte(`{"books":`+arrayOf(many(700))+`}`), nil)
	if n := small[0].Chunks; n != 8 {
		t.Errorf("70,000 bytes are in %d chunks, want 8", n)
	}
	grown := small[0].Array
	grown.Bytes = 30 << 10 * grown.Chunks
	if small[0].Outgrown() || !grown.Outgrown() {
		t.Error("chunks of 30 KiB are no reason to make more of them, or those of 8 KiB are")
	}
	head, large := chunk.Arrays{Names: []string{"books"}}.Split([]byte(`{"books":`+arrayOf(many(7000))+`}`), small)
	if n := large[0].Chunks; n != 85 {
		t.Errorf("700,000 bytes are in %d chunks, want 85", n)
	}
	if n := len(large[0].Changed(small)); n != 85 {
		t.Errorf("%d chunks differ, want all 85", n)
	}
	_, whole := chunk.Arrays{Names: []string{"books"}}.Split(head, large)
	if whole != nil {
		t.Errorf("an empty array is still in chunks: %+v", whole[0].Array)
	}
	gone := &chunk.Content{Array: chunk.Array{Name: "books"}}
	if n := len(gone.Changed(large)); n != 85 {
		t.Errorf("%d chunks are removed with the array, want 85", n)
	}
}

// Until all processes read chunks, whole arrays stay whole, and those in chunks stay in chunks.
func TestNoMoreArraysThanMayBeAreInChunks(t *testing.T) {
	body := []byte(`{"books":` + arrayOf(many(1000)) + `}`)
	may := false
	arrays := chunk.Arrays{Names: []string{"books"}, More: func() bool { return may }}
	if _, split := arrays.Split(body, nil); split != nil || arrays.May(body) {
		t.Error("the array was put in chunks")
	}
	may = true
	_, split := arrays.Split(body, nil)
	if split == nil || !arrays.May(body) {
		t.Fatal("the array stayed whole")
	}
	may = false
	if _, again := arrays.Split(body, split); again == nil {
		t.Error("the array is whole again")
	}
	if _, gone := (chunk.Arrays{}).Split(body, split); gone != nil {
		t.Error("the array of another field stayed in chunks")
	}
}

func TestDamageIsReported(t *testing.T) {
	head, arrays := chunk.Arrays{Names: []string{"books"}}.Split([]byte(`{"books":`+arrayOf(many(1000))+`}`), nil)
	encoded := chunk.Encode(chunk.Described(arrays))
	for i := range encoded {
		_, _ = chunk.Decode(encoded[:i]) // it must not panic
	}
	for name, damage := range map[string]func(c *chunk.Content){
		"a chunk is missing":        func(c *chunk.Content) { c.Data[3] = nil },
		"a chunk is cut":            func(c *chunk.Content) { c.Data[3] = c.Data[3][:100] },
		"a chunk is there twice":    func(c *chunk.Content) { c.Data[3] = c.Data[4] },
		"it has the number of one":  func(c *chunk.Content) { c.Next = 1 },
		"it is at another place":    func(c *chunk.Content) { c.At = 2 },
		"it is behind the end":      func(c *chunk.Content) { c.At = 1 << 30 },
		"it has one entry more":     func(c *chunk.Content) { c.Count++ },
		"it has a byte less":        func(c *chunk.Content) { c.Bytes-- },
		"its numbers have gaps now": func(c *chunk.Content) { c.Next, c.Count = 1<<20, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := arrays[0]
			c.Data = slices.Clone(c.Data)
			damage(&c)
			if joined, err := chunk.Join(head, []chunk.Content{c}); err == nil {
				t.Errorf("joined it is %.100s", joined)
			}
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	head, arrays := chunk.Arrays{Names: []string{"books"}}.Split([]byte(`{"books":`+arrayOf(many(10_000))+`}`), nil)
	for b.Loop() {
		if _, err := chunk.Join(head, arrays); err != nil {
			b.Fatal(err)
		}
	}
}
