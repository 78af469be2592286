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
			for after, want := range map[string]int{"": 1, "!": 1, c.hash()[:63]: 1, c.hash(): 0, c.hash() + "0": 0, "~": 0} {
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

func tidyTests() []test {
	return []test{
		{"an empty storage has no abandoned stages", func(f *fixture) { f.tidies(0, time.Hour) }},
		{"abandoned stages are removed, contents are not", func(f *fixture) {
			if f.harness.Abandon == nil {
				return
			}
			c := random("a", 70_000)
			f.put(c)
			for range 3 {
				f.must(f.harness.Abandon(f.ctx))
			}
			f.tidies(0, -time.Hour)
			f.tidies(3, time.Hour)
			f.holds(c)
			f.lists(10, c)
		}},
		{"a stage in use is not removed", func(f *fixture) {
			c := random("a", f.largest())
			s := f.stage(c)
			f.tidies(0, time.Hour)
			f.must(s.Commit(f.ctx, c.hash()))
			f.tidies(0, time.Hour)
			f.must(f.Delete(f.ctx, c.hash()))
			f.must(s.Commit(f.ctx, c.hash()))
			f.holds(c)
		}},
	}
}

func reopenTests() []test {
	return []test{
		{"contents persist when the storage is closed", func(f *fixture) {
			a, b, c := random("a", 70_000), content(nil), random("c", f.largest())
			for _, c := range []content{a, b, c} {
				f.put(c)
			}
			f.must(f.Delete(f.ctx, a.hash()))
			f.reopen()
			f.lacks(a.hash())
			f.holds(b)
			f.holds(c)
			f.lists(10, b, c)
			f.put(a)
			f.reopen()
			f.holds(a)
		}},
	}
}
