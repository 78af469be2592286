package binarytest

import (
	"fmt"
	"time"

	"belfry/pkg/errs"
)

func stageTests() []test {
	return []test{
		{"a staged content is not visible", func(f *fixture) {
			c := random("a", 300_000)
			f.stage(c)
			f.lacks(c.hash())
			f.lists(10)
		}},
		{"a discarded stage leaves nothing", func(f *fixture) {
			c := random("a", 300_000)
			f.stage(c).Discard()
			f.lacks(c.hash())
			f.tidies(0, time.Hour)
		}},
		{"an empty stage can be discarded", func(f *fixture) {
			f.stage(nil).Discard()
			f.lists(10)
			f.tidies(0, time.Hour)
		}},
		{"concurrent stages are independent", func(f *fixture) {
			a, b := random("a", 200_000), random("b", 300_000)
			first, second := f.stage(a), f.stage(b)
			f.must(second.Commit(f.ctx, b.hash()))
			f.must(first.Commit(f.ctx, a.hash()))
			f.holds(a)
			f.holds(b)
		}},
	}
}

func commitTests() []test {
	return []test{
		{"a content outlives its stage", func(f *fixture) {
			c := random("a", 70_000)
			s := f.stage(c)
			f.must(s.Commit(f.ctx, c.hash()))
			f.holds(c)
			s.Discard()
			f.holds(c)
			f.tidies(0, time.Hour)
		}},
		{"a stage can be committed again", func(f *fixture) {
			c := random("a", 70_000)
			s := f.stage(c)
			for range 3 {
				f.must(s.Commit(f.ctx, c.hash()))
				f.holds(c)
			}
			f.lists(10, c)
		}},
		{"a second commit restores a deleted content", func(f *fixture) {
			c := random("a", 70_000)
			s := f.stage(c)
			for range 3 {
				f.must(s.Commit(f.ctx, c.hash()))
				f.must(f.Delete(f.ctx, c.hash()))
				f.lacks(c.hash())
			}
			f.must(s.Commit(f.ctx, c.hash()))
			s.Discard()
			f.holds(c)
		}},
		{"a content is stored once", func(f *fixture) {
			c := random("a", 70_000)
			f.put(c)
			f.put(c)
			f.holds(c)
			f.lists(10, c)
		}},
		{"a commit updates the modification time", modifiedNow},
	}
}

// modifiedNow commits until the clock of the storage, which may be coarse, has
// advanced.
func modifiedNow(f *fixture) {
	c := random("a", 10)
	f.put(c)
	modified := func() time.Time {
		info, found, err := f.Stat(f.ctx, c.hash())
		if err != nil || !found {
			f.Fatalf("Stat: found %v, error %v", found, err)
		}
		return info.Modified
	}
	for _, again := range []func(){
		func() { f.put(c) },
		func() { f.must(f.stage(c).Commit(f.ctx, c.hash())) },
	} {
		first := modified()
		f.eventually(10*time.Second, func() error {
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
		{"a string that is not a hash finds nothing", func(f *fixture) {
			f.put(random("a", 10))
			hash := random("a", 10).hash()
			for _, name := range []string{
				"", ".", "..", "../" + hash, "/" + hash, hash + "/", hash[:63], hash + "0", hash[:62] + "/.",
				hash[:63] + "\x00", "../../../../etc/passwd", "tmp", hash[:2], hash[:63] + "A", hash[:60] + "żó",
			} {
				f.lacks(name)
				f.must(f.Delete(f.ctx, name))
				if err := f.stage(random("b", 10)).Commit(f.ctx, name); err == nil ||
					errs.KindOf(err) != errs.Internal {
					f.Fatalf("Commit under %q: got the error %v, want one of kind %q", name, err, errs.Internal)
				}
			}
			f.holds(random("a", 10))
			f.lists(10, random("a", 10))
		}},
	}
}
