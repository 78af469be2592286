package binarytest

import (
	"fmt"
	"time"

	"belfry/pkg/errs"
)

func stageTests() []test {
	return []test{
		{"what is staged is not seen", func(w *world) {
			c := random("a", 300_000)
			w.stage(c)
			w.lacks(c.hash())
			w.lists(10)
		}},
		{"what is discarded leaves nothing", func(w *world) {
			c := random("a", 300_000)
			w.stage(c).Discard()
			w.lacks(c.hash())
			w.tidies(0, time.Hour)
		}},
		{"nothing written can be discarded", func(w *world) {
			w.stage(nil).Discard()
			w.lists(10)
			w.tidies(0, time.Hour)
		}},
		{"stages side by side are their own", func(w *world) {
			a, b := random("a", 200_000), random("b", 300_000)
			first, second := w.stage(a), w.stage(b)
			w.must(second.Commit(w.ctx, b.hash()))
			w.must(first.Commit(w.ctx, a.hash()))
			w.holds(a)
			w.holds(b)
		}},
	}
}

func commitTests() []test {
	return []test{
		{"what is committed is kept", commitSizes},
		{"it is kept after the stage has gone", func(w *world) {
			c := random("a", 70_000)
			s := w.stage(c)
			w.must(s.Commit(w.ctx, c.hash()))
			w.holds(c)
			s.Discard()
			w.holds(c)
			w.tidies(0, time.Hour)
		}},
		{"it may be committed again", func(w *world) {
			c := random("a", 70_000)
			s := w.stage(c)
			for range 3 {
				w.must(s.Commit(w.ctx, c.hash()))
				w.holds(c)
			}
			w.lists(10, c)
		}},
		{"committing again brings back what was deleted", func(w *world) {
			c := random("a", 70_000)
			s := w.stage(c)
			for range 3 {
				w.must(s.Commit(w.ctx, c.hash()))
				w.must(w.Delete(w.ctx, c.hash()))
				w.lacks(c.hash())
			}
			w.must(s.Commit(w.ctx, c.hash()))
			s.Discard()
			w.holds(c)
		}},
		{"it brings back what was large, or nothing", func(w *world) {
			for _, c := range []content{nil, random("large", w.largest())} {
				s := w.stage(c)
				w.must(s.Commit(w.ctx, c.hash()))
				w.must(w.Delete(w.ctx, c.hash()))
				w.must(s.Commit(w.ctx, c.hash()))
				s.Discard()
				w.holds(c)
			}
		}},
		{"a content that is there is kept once", func(w *world) {
			c := random("a", 70_000)
			w.put(c)
			w.put(c)
			w.holds(c)
			w.lists(10, c)
		}},
		{"a content that is there counts as modified now", modifiedNow},
	}
}

// sizes are those of contents that are tried.
func (w *world) sizes() []int {
	sizes := []int{0, 1, 4096, 1 << 20}
	for _, size := range w.harness.Features.Sizes {
		sizes = append(sizes, size-1, size, size+1)
	}
	return sizes
}

func (w *world) largest() int {
	sizes := w.sizes()
	return sizes[len(sizes)-1]
}

func commitSizes(w *world) {
	var all []content
	for _, size := range w.sizes() {
		c := random(fmt.Sprint(size), size)
		s := w.stage(c)
		w.must(s.Commit(w.ctx, c.hash()))
		s.Discard()
		w.holds(c)
		all = append(all, c)
	}
	w.lists(10, all...)
}

// modifiedNow commits until the storage's clock, which may be a coarse one, has
// moved on.
func modifiedNow(w *world) {
	c := random("a", 10)
	w.put(c)
	modified := func() time.Time {
		info, found, err := w.Stat(w.ctx, c.hash())
		if err != nil || !found {
			w.Fatalf("Stat: found %v, error %v", found, err)
		}
		return info.Modified
	}
	for _, again := range []func(){
		func() { w.put(c) },
		func() { w.must(w.stage(c).Commit(w.ctx, c.hash())) },
	} {
		first := modified()
		w.eventually(10*time.Second, func() error {
			again()
			if now := modified(); !now.After(first) {
				return fmt.Errorf("modified at %v, committed again, and still modified at %v", first, now)
			}
			return nil
		})
	}
}

func nameTests() []test {
	return []test{
		{"what is no hash names nothing", func(w *world) {
			w.put(random("a", 10))
			hash := random("a", 10).hash()
			for _, name := range []string{
				"", ".", "..", "../" + hash, "/" + hash, hash + "/", hash[:63], hash + "0", hash[:62] + "/.",
				hash[:63] + "\x00", "../../../../etc/passwd", "tmp", hash[:2], hash[:63] + "A", hash[:60] + "żó",
			} {
				w.lacks(name)
				w.must(w.Delete(w.ctx, name))
				if err := w.stage(random("b", 10)).Commit(w.ctx, name); err == nil || errs.KindOf(err) != errs.Internal {
					w.Fatalf("Commit under %q: got the error %v, want one of kind %q", name, err, errs.Internal)
				}
			}
			w.holds(random("a", 10))
			w.lists(10, random("a", 10))
		}},
	}
}
