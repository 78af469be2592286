package binarytest

import (
	"fmt"
	"time"
)

func listTests() []test {
	return []test{
		{"nothing is listed of nothing", func(w *world) { w.lists(10) }},
		{"contents are in the order of their hashes, on pages of any size", func(w *world) {
			var all []content
			for i := range 23 {
				c := random(fmt.Sprint(i), i)
				w.put(c)
				all = append(all, c)
			}
			for _, limit := range []int{1, 2, 11, 22, 23, 24, 1000} {
				w.lists(limit, all...)
			}
		}},
		{"a list goes on behind a content that is gone", func(w *world) {
			var all []content
			for i := range 9 {
				c := random(fmt.Sprint(i), i)
				w.put(c)
				all = append(all, c)
			}
			w.lists(10, all...)
			page, next, err := w.List(w.ctx, "", 4)
			w.must(err)
			if len(page) != 4 || next == "" {
				w.Fatalf("the first page has %d contents, and %q follows", len(page), next)
			}
			w.must(w.Delete(w.ctx, page[3].Hash))
			more, next, err := w.List(w.ctx, next, 10)
			w.must(err)
			if len(more) != 5 || next != "" || more[0].Hash <= page[3].Hash {
				w.Fatalf("%d contents follow and then %q; want the other 5", len(more), next)
			}
		}},
		{"a list begins behind whatever is named", func(w *world) {
			c := random("a", 10)
			w.put(c)
			w.lists(10, c)
			for after, want := range map[string]int{"": 1, "!": 1, c.hash()[:63]: 1, c.hash(): 0, c.hash() + "0": 0, "~": 0} {
				if page, _, err := w.List(w.ctx, after, 10); err != nil || len(page) != want {
					w.Errorf("%d contents are behind %q, want %d; error %v", len(page), after, want, err)
				}
			}
		}},
	}
}

// tidies asserts that Tidy comes to find as many stages that began before a
// time from now, and then none any more.
func (w *world) tidies(want int, fromNow time.Duration) {
	w.Helper()
	before := time.Now().Add(fromNow)
	total := 0
	tidy := func() {
		n, err := w.Tidy(w.ctx, before)
		w.must(err)
		total += n
	}
	w.eventually(2*w.harness.Features.Settle, func() error {
		if tidy(); total != want {
			return fmt.Errorf("%d stages were left behind that began before %s, want %d", total, before, want)
		}
		return nil
	})
	if tidy(); total != want {
		w.Fatalf("%d stages were found once more", total-want)
	}
}

func tidyTests() []test {
	return []test{
		{"nothing is left behind of nothing", func(w *world) { w.tidies(0, time.Hour) }},
		{"what a killed process left goes, contents stay", func(w *world) {
			if w.harness.Abandon == nil {
				return
			}
			c := random("a", 70_000)
			w.put(c)
			for range 3 {
				w.must(w.harness.Abandon(w.ctx))
			}
			w.tidies(0, -time.Hour)
			w.tidies(3, time.Hour)
			w.holds(c)
			w.lists(10, c)
		}},
		{"a stage in use is left alone", func(w *world) {
			c := random("a", w.largest())
			s := w.stage(c)
			w.tidies(0, time.Hour)
			w.must(s.Commit(w.ctx, c.hash()))
			w.tidies(0, time.Hour)
			w.must(w.Delete(w.ctx, c.hash()))
			w.must(s.Commit(w.ctx, c.hash()))
			w.holds(c)
		}},
	}
}

func reopenTests() []test {
	return []test{
		{"contents outlive a close", func(w *world) {
			a, b, c := random("a", 70_000), content(nil), random("c", w.largest())
			for _, c := range []content{a, b, c} {
				w.put(c)
			}
			w.must(w.Delete(w.ctx, a.hash()))
			w.reopen()
			w.lacks(a.hash())
			w.holds(b)
			w.holds(c)
			w.lists(10, b, c)
			w.put(a)
			w.reopen()
			w.holds(a)
		}},
	}
}
