package binarytest

import (
	"fmt"
	"time"
)

func listTests() []test {
	return []test{
		{"an empty storage lists nothing", func(f *fixture) { f.lists(10) }},
		{"contents are listed in the order of their hashes, for any page size", func(f *fixture) {
			var all []content
			for i := range 23 {
				c := random(fmt.Sprint(i), i)
				f.put(c)
				all = append(all, c)
			}
			for _, limit := range []int{1, 2, 11, 22, 23, 24, 1000} {
				f.lists(limit, all...)
			}
		}},
		{"a listing continues after a deleted content", func(f *fixture) {
			var all []content
			for i := range 9 {
				c := random(fmt.Sprint(i), i)
				f.put(c)
				all = append(all, c)
			}
			f.lists(10, all...)
			page, next, err := f.List(f.ctx, "", 4)
			f.must(err)
			if len(page) != 4 || next == "" {
				f.Fatalf("the first page has %d contents, and %q follows", len(page), next)
			}
			f.must(f.Delete(f.ctx, page[3].Hash))
			more, next, err := f.List(f.ctx, next, 10)
			f.must(err)
			if len(more) != 5 || next != "" || more[0].Hash <= page[3].Hash {
				f.Fatalf("%d contents follow and then %q; want the other 5", len(more), next)
			}
		}},
		{"a listing begins after any string", func(f *fixture) {
			c := random("a", 10)
			f.put(c)
			f.lists(10, c)
			for after, want := range map[string]int{"": 1, "!": 1, c.hash()[:63]: 1, c.hash(): 0, c.hash() + "0": 0,
				"~": 0} {
				if page, _, err := f.List(f.ctx, after, 10); err != nil || len(page) != want {
					f.Errorf("%d contents are after %q, want %d; error %v", len(page), after, want, err)
				}
			}
		}},
	}
}

// tidies asserts that RemoveAbandoned removes this number of stages that began
// before a time relative to now, and then no more.
func (f *fixture) tidies(want int, fromNow time.Duration) {
	f.Helper()
	before := time.Now().Add(fromNow)
	total := 0
	tidy := func() {
		n, err := f.RemoveAbandoned(f.ctx, before)
		f.must(err)
		total += n
	}
	f.eventually(2*f.harness.Features.ListLag, func() error {
		if tidy(); total != want {
			return fmt.Errorf("%d abandoned stages began before %s, want %d", total, before, want)
		}
		return nil
	})
	if tidy(); total != want {
		f.Fatalf("%d stages were found once more", total-want)
	}
}

func removeTests() []test {
	return []test{
		{"an empty storage has no abandoned stages", func(f *fixture) { f.tidies(0, time.Hour) }},
	}
}
