package binarytest

import (
	"bytes"
	"slices"
	"strings"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// variantTests pass for a storage without variants.
func variantTests() []test {
	of := func(run func(*fixture, driver.Variants)) func(*fixture) {
		return func(f *fixture) {
			if v, ok := f.Storage.(driver.Variants); ok {
				run(f, v)
			}
		}
	}
	has := func(f *fixture, v driver.Variants, hash, name, want string) {
		f.Helper()
		got, err := v.Variant(f.ctx, hash, name)
		if f.must(err); string(got) != want {
			f.Errorf("the variant is %q, want %q", got, want)
		}
	}
	lacks := func(f *fixture, v driver.Variants, hash, name string) {
		f.Helper()
		_, err := v.Variant(f.ctx, hash, name)
		f.wantKind(err, errs.NotFound)
	}
	a, b, c := random("a", 10), random("b", 10), random("c", 10)
	return []test{
		{"variants are stored, replaced and deleted by their content", of(func(f *fixture, v driver.Variants) {
			f.must(v.DeleteVariants(f.ctx, a.hash()))
			lacks(f, v, a.hash(), "90x60")
			f.must(v.PutVariant(f.ctx, a.hash(), "90x60", []byte("one")))
			f.must(v.PutVariant(f.ctx, a.hash(), "800x", bytes.Repeat([]byte("x"), 1<<20)))
			f.must(v.PutVariant(f.ctx, b.hash(), "90x60", nil))
			f.must(v.PutVariant(f.ctx, a.hash(), "90x60", []byte("two")))
			has(f, v, a.hash(), "90x60", "two")
			has(f, v, a.hash(), "800x", strings.Repeat("x", 1<<20))
			f.reopen()
			v = f.Storage.(driver.Variants)
			f.must(v.DeleteVariants(f.ctx, a.hash()))
			lacks(f, v, a.hash(), "90x60")
			lacks(f, v, a.hash(), "800x")
			has(f, v, b.hash(), "90x60", "")
			f.must(v.DeleteVariants(f.ctx, b.hash()))
		})},
		{"variants are no contents, and contents no variants", of(func(f *fixture, v driver.Variants) {
			f.must(v.PutVariant(f.ctx, a.hash(), "90x60", []byte("x")))
			f.lists(10)
			f.lacks(a.hash())
			f.put(a)
			f.must(f.Delete(f.ctx, a.hash()))
			has(f, v, a.hash(), "90x60", "x")
			f.put(a)
			f.must(v.DeleteVariants(f.ctx, a.hash()))
			f.lists(10, a)
		})},
		{"contents with variants are listed in order, in pages", of(func(f *fixture, v driver.Variants) {
			f.put(c)
			var want []string
			for _, one := range []content{a, b, c} {
				f.must(v.PutVariant(f.ctx, one.hash(), "90x60", []byte("x")))
				f.must(v.PutVariant(f.ctx, one.hash(), "800x", []byte("x")))
				want = append(want, one.hash())
			}
			slices.Sort(want)
			for limit := 1; limit <= 4; limit++ {
				var got []string
				for after := ""; ; {
					page, next, err := v.ListVariants(f.ctx, after, limit)
					f.must(err)
					if got = append(got, page...); len(page) > limit || next == "" {
						break
					}
					after = next
				}
				if !slices.Equal(got, want) {
					f.Errorf("in pages of %d: %q, want %q", limit, got, want)
				}
			}
		})},
		{"a variant has a name of one form", of(func(f *fixture, v driver.Variants) {
			for _, name := range []string{"", ".", "..", ".a", "a/b", "../a", "a b", "ä", strings.Repeat("a", 33),
				"a\x00"} {
				f.wantKind(v.PutVariant(f.ctx, a.hash(), name, []byte("x")), errs.Internal)
				lacks(f, v, a.hash(), name)
			}
			for _, hash := range []string{"", "..", a.hash()[1:], strings.ToUpper(a.hash())} {
				f.wantKind(v.PutVariant(f.ctx, hash, "90x60", []byte("x")), errs.Internal)
				lacks(f, v, hash, "90x60")
				f.must(v.DeleteVariants(f.ctx, hash))
			}
		})},
	}
}
