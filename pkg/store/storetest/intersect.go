package storetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// OneIndex is a backend whose stores are KeyCounters but not Intersecters, even if those of Backend are. With it, a
// test compares lists that use intersections with lists that use one index.
type OneIndex struct{ driver.Backend }

// Open implements driver.Backend.
func (b OneIndex) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return struct {
		driver.Store
		driver.KeyCounter
	}{s, s.(driver.KeyCounter)}, nil
}

// intersectTests hold of each store that is an Intersecter.
func intersectTests() []test {
	return []test{
		{"what indexes have in common is what has all keys", intersectionsEqualAModel},
		{"a page continues and turns at each of its records", intersectionsTurn},
		{"paging continues while records are changed", intersectionsDuringWrites},
		{"what has nothing in common is not compared", intersectionsSkip},
		{"a page ends before it is too large", largeIntersections},
		{"an intersection that its indexes do not support is an internal error", intersectInvalid},
	}
}

// The indexes of these tests, besides byColor, byPlace and byTag.
var (
	byShelf = driver.Index{Name: "shelf", Parts: 2}
	byLabel = driver.Index{Name: "label", Parts: 3, Multi: true}
)

func (s *testStore) intersecter() (driver.Intersecter, bool) {
	i, ok := s.Store.(driver.Intersecter)
	return i, ok // lists read one index, and check the objects
}

// intersect returns all records of an intersection. Each page but the last has to be after the one before.
func (s *testStore) intersect(q driver.Query, maxKeys int, conditions ...driver.KeyCondition) (found []driver.Record) {
	s.f.Helper()
	i, _ := s.intersecter()
	for {
		page, err := i.Intersect(s.f.ctx, q, conditions, maxKeys)
		s.f.must(err)
		s.f.must(checkSize(len(page.Records), q.Limit))
		if found = append(found, page.Records...); page.Next == nil {
			return found
		}
		if page.Keys < min(maxKeys, len(page.Records)) || page.Keys > maxKeys+20 {
			s.f.Fatalf("a page compared %d keys, of at most about %d", page.Keys, maxKeys)
		}
		if bytes.Equal(page.Next, q.After) {
			s.f.Fatalf("%s is after itself", describeQuery(q))
		}
		q.After = page.Next
	}
}

// intersectionsEqualAModel: pages of any size that may compare any number of keys have together what the model has, in
// both directions, and so do counts. The parts are few, so that there are intersections of all sizes, and among them
// are those that an encoding escapes.
func intersectionsEqualAModel(f *fixture) {
	s := f.open("Books", byColor, byPlace, byTag, byShelf, byLabel)
	intersecter, ok := s.intersecter()
	if !ok {
		return
	}
	r := rand.New(rand.NewPCG(7, 1)) //nolint:gosec // the same parts each time
	part := func() string { return []string{"a", "a", "a", "b", "\x00", "\xff"}[r.IntN(6)] }
	var records []keyedRecord
	for i := range 90 {
		d := keyed("color", part()).and("place", part(), part()).and("shelf", part(), part()).and("tag",
			part()).and("tag", part())
		d.and("label", part(), part(), part()).and("label", part(), part(), part())
		uuid := fmt.Sprintf("n%02d", i)
		if i%8 == 0 {
			s.put(uuid, 0, 1, keyed("color", "a").and("tag", "a").and("place", "a", "b").and("shelf", "a", "b"))
			if i%16 == 0 {
				s.put(uuid, 1, 2, nil)
				continue
			}
			d = d.and("gone", "x") // of no index
			s.put(uuid, 1, 2, d)
		} else {
			s.put(uuid, 0, 2, d)
		}
		records = append(records, keyedRecord{uuid, d})
	}
	equal := func(n int) (all [][]byte) {
		for range n {
			all = append(all, []byte(part()))
		}
		return all
	}
	indexes, found := []driver.Index{byColor, byPlace, byTag, byShelf, byLabel}, 0
	for range 250 {
		of := indexes[r.IntN(len(indexes))]
		q := driver.Query{Index: of.Name, Equal: equal(of.Parts), Descending: r.IntN(2) == 0, Limit: 1 + r.IntN(9)}
		if !of.Multi && of.Parts > 1 {
			q.Equal = q.Equal[:1]
			if r.IntN(3) == 0 {
				q.From, q.To = []byte("a"), []byte{0xff}
			}
		}
		rest := of.Parts - len(q.Equal)
		var conditions []driver.KeyCondition
		for range 1 + r.IntN(3) {
			on := indexes[r.IntN(len(indexes))]
			if on.Parts == rest {
				continue
			}
			c := driver.KeyCondition{Index: on.Name}
			for range 1 + r.IntN(2) {
				c.Equal = append(c.Equal, equal(on.Parts-rest))
			}
			conditions = append(conditions, c)
		}
		want := matches(records, q, conditions)
		found += len(want)
		maxKeys := []int{1, 2, 3, 10, 100_000}[r.IntN(5)]
		about := fmt.Sprintf("%s with %q in pages of %d keys", describeQuery(q), conditions, maxKeys)
		if got := s.intersect(q, maxKeys, conditions...); uuids(got) != strings.Join(want, " ") {
			f.Fatalf("%s found %q, want %q", about, uuids(got), want)
		}
		if n, all, err := intersecter.CountCommon(f.ctx, q, conditions, 100_000); n != len(want) || !all || err != nil {
			f.Fatalf("%s: counted %d, all: %v, error %v; want %d", about, n, all, err, len(want))
		}
		if n, all, err := intersecter.CountCommon(f.ctx, q, conditions, maxKeys); n > len(want) ||
			all && n < len(want) || err != nil {
			f.Fatalf("%s: counted %d, all: %v, error %v; there are %d", about, n, all, err, len(want))
		}
	}
	if found < 500 {
		f.Fatalf("only %d records were found", found)
	}
}

// red are the conditions of the records that have the tag new and the color red.
var red = []driver.KeyCondition{{Index: "color", Equal: [][][]byte{parts("red")}}}

func intersectionsTurn(f *fixture) {
	s := f.open("Books", byColor, byTag)
	intersecter, ok := s.intersecter()
	if !ok {
		return
	}
	for i := range 60 { // first all of them, then few, then all again
		color := "red"
		if i > 15 && i < 45 && i%9 != 0 {
			color = "blue"
		}
		s.put(fmt.Sprintf("n%02d", i), 0, 1, keyed("color", color).and("tag", "new").and("tag", "old"))
	}
	for _, descending := range []bool{false, true} {
		q := driver.Query{Index: "tag", Equal: parts("new"), Descending: descending, Limit: 100}
		all, err := intersecter.Intersect(f.ctx, q, red, 1000)
		f.must(err)
		single, err := s.Query(f.ctx, q)
		f.must(err)
		if len(all.Records) != 34 || all.Next != nil {
			f.Fatalf("found %d records, and %q is next", len(all.Records), all.Next)
		}
		for i, position := range all.Positions {
			if at := slices.IndexFunc(single.Records,
				func(r driver.Record) bool { return r.UUID == all.Records[i].UUID }); !bytes.Equal(single.Positions[at],
				position) {
				f.Errorf("the position of %s is %q, that of the query %q", all.Records[i].UUID, position,
					single.Positions[at])
			}
			q.After, q.Descending = position, descending
			if got, want := uuids(s.intersect(q, 1000, red...)), uuids(all.Records[i+1:]); got != want {
				f.Errorf("after %s are %q, want %q", all.Records[i].UUID, got, want)
			}
			before := slices.Clone(all.Records[:i])
			slices.Reverse(before)
			q.Descending = !descending
			if got, want := uuids(s.intersect(q, 3, red...)), uuids(before); got != want {
				f.Errorf("turned at %s are %q, want %q", all.Records[i].UUID, got, want)
			}
		}
	}
}

func intersectionsDuringWrites(f *fixture) {
	s := f.open("Books", byColor, byTag)
	intersecter, ok := s.intersecter()
	if !ok {
		return
	}
	for i, uuid := range []string{"a", "c", "e", "g", "i", "k"} {
		s.put(uuid, 0, uint64(i+1), keyed("color", "red").and("tag", "new"))
	}
	q := driver.Query{Index: "tag", Equal: parts("new"), Limit: 2}
	first, err := intersecter.Intersect(f.ctx, q, red, 1000)
	f.must(err)
	s.put("c", 2, 7, nil)
	s.put("b", 0, 8, keyed("color", "red").and("tag", "new"))
	s.put("e", 3, 9, keyed("color", "blue").and("tag", "new"))
	s.put("i", 5, 10, keyed("color", "red"))
	s.put("f", 0, 11, keyed("color", "red").and("tag", "new"))
	q.After = first.Next
	if got := uuids(first.Records) + " " + uuids(s.intersect(q, 1000, red...)); got != "a c f g k" {
		f.Fatalf("pages found %q, want %q", got, "a c f g k")
	}
}

// intersectionsDuringUpdates: a record that has one key or the other, both at times, or is deleted, is found only as it
// has both, and the others each time.
func intersectionsDuringUpdates(f *fixture) {
	s := f.open("Books", byColor, byTag)
	intersecter, ok := s.intersecter()
	if !ok {
		return
	}
	var still []string
	for i := range 12 {
		uuid := fmt.Sprintf("still%02d", i)
		if i%3 == 0 {
			s.put(uuid, 0, 1, keyed("color", "blue").and("tag", "new"))
			continue
		}
		still = append(still, uuid)
		s.put(uuid, 0, 1, keyed("color", "red").and("tag", "new"))
	}
	states := []*doc{keyed("color", "red"), keyed("color", "blue").and("tag", "new"),
		keyed("color", "red").and("tag", "new"), nil}
	var done atomic.Bool
	f.concurrently(3, func(i int) error {
		if i == 0 {
			defer done.Store(true)
			for revision := range uint64(f.times(40)) { //nolint:gosec // small
				before := revision
				if revision%4 == 0 {
					before = 0 // it was deleted
				}
				if err := s.Put(f.ctx, s.write("still05-moving", before, revision+1, states[revision%4])); err != nil {
					return err
				}
			}
			return nil
		}
		for !done.Load() {
			var got []string
			for q := (driver.Query{Index: "tag", Equal: parts("new"), Limit: i + 1}); ; {
				page, err := intersecter.Intersect(f.ctx, q, red, 5*i)
				if err != nil {
					return err
				}
				for _, r := range page.Records {
					if both := states[2].encode(); !bytes.Equal(r.Body, both) {
						return fmt.Errorf("found %s, which lacks a key", describe(r))
					}
					if r.UUID != "still05-moving" {
						got = append(got, r.UUID)
					}
				}
				if q.After = page.Next; q.After == nil {
					break
				}
			}
			if !slices.Equal(got, still) {
				return fmt.Errorf("found %q, want %q", got, still)
			}
		}
		return nil
	})
}

// intersectionsSkip: the number of keys that are compared is that of the smaller index, and a page that compares few of
// them continues where the one before has ended.
func intersectionsSkip(f *fixture) {
	s := f.open("Books", byColor, byTag)
	intersecter, ok := s.intersecter()
	if !ok {
		return
	}
	const n = 120
	for i := range n {
		d := keyed("color", []string{"red", "blue"}[i%2]).and("tag", "new") // red and even never meet
		if i%2 == 1 {
			d.and("tag", "odd")
		} else if i == 80 {
			d.and("tag", "one")
		}
		s.put(fmt.Sprintf("n%03d", i), 0, 1, d)
	}
	for _, descending := range []bool{false, true} {
		q := driver.Query{Index: "color", Equal: parts("red"), Descending: descending, Limit: 10}
		with := func(tag string) []driver.KeyCondition {
			return []driver.KeyCondition{{Index: "tag", Equal: [][][]byte{parts(tag)}}}
		}
		page, err := intersecter.Intersect(f.ctx, q, with("one"), 1000)
		f.must(err)
		if uuids(page.Records) != "n080" || page.Keys > 20 {
			f.Errorf("found %s by comparing %d keys", uuids(page.Records), page.Keys)
		}
		pages := 0
		for more := true; more; pages++ {
			page, err := intersecter.Intersect(f.ctx, q, with("odd"), 60)
			f.must(err)
			q.After, more = page.Next, page.Next != nil
			if len(page.Records) > 0 || pages > n {
				f.Fatalf("page %d has %q", pages, uuids(page.Records))
			}
		}
		if pages > 6 {
			f.Errorf("%d pages of 60 keys were read of %d keys", pages, n)
		}
	}
}

func largeIntersections(f *fixture) {
	s := f.open("Books", byColor, byTag)
	intersecter, ok := s.intersecter()
	if !ok {
		return
	}
	for i := range 4 {
		d := keyed("color", "red").and("tag", "new")
		d.Text = strings.Repeat("x", 1000)
		s.put(fmt.Sprint("n", i), 0, 1, d)
	}
	q := driver.Query{Index: "tag", Equal: parts("new"), Limit: 10, MaxBytes: 2500}
	page, err := intersecter.Intersect(f.ctx, q, red, 1000)
	f.must(err)
	if got := uuids(page.Records); got != "n0 n1" || page.Next == nil {
		f.Errorf("a page of at most the bytes of two records has %s, and %q is next", got, page.Next)
	}
	if got := uuids(s.intersect(q, 1000, red...)); got != "n0 n1 n2 n3" {
		f.Errorf("all pages have %s", got)
	}
}

func intersectInvalid(f *fixture) {
	s := f.open("Books", byColor, byPlace, byTag)
	intersecter, ok := s.intersecter()
	if !ok {
		return
	}
	color := driver.Query{Index: "color", Equal: parts("x"), Limit: 1}
	for _, c := range []struct {
		q         driver.Query
		condition driver.KeyCondition
	}{
		{driver.Query{Index: "none", Limit: 1}, driver.KeyCondition{Index: "color", Equal: [][][]byte{parts("x")}}},
		{color, driver.KeyCondition{Index: "none", Equal: [][][]byte{parts("x")}}},
		{color, driver.KeyCondition{Index: "place", Equal: [][][]byte{parts("x")}}},
		{color, driver.KeyCondition{Index: "tag", Equal: [][][]byte{parts("x"), parts("x", "y")}}},
		{driver.Query{Index: "color", Limit: 1}, driver.KeyCondition{Index: "tag", Equal: [][][]byte{nil}}},
	} {
		_, err := intersecter.Intersect(f.ctx, c.q, []driver.KeyCondition{c.condition}, 10)
		f.wantKind(err, errs.Internal)
		_, _, err = intersecter.CountCommon(f.ctx, c.q, []driver.KeyCondition{c.condition}, 10)
		f.wantKind(err, errs.Internal)
	}
}
