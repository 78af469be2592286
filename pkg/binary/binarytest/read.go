package binarytest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

func openTests() []test {
	return []test{
		{"ranges are read", readParts},
		{"an unknown hash is not found", func(f *fixture) {
			f.lacks(random("a", 1).hash())
			_, err := f.Open(f.ctx, random("a", 1).hash(), 5, 5)
			f.wantKind(err, errs.NotFound)
		}},
		{"a reader can be closed before its end", func(f *fixture) {
			c := random("a", f.largest())
			f.put(c)
			r, err := f.Open(f.ctx, c.hash(), 0, -1)
			f.must(err)
			_, err = io.ReadFull(r, make([]byte, 100))
			f.must(err)
			f.must(r.Close())
			f.holds(c)
		}},
		{"concurrent readers are independent", func(f *fixture) {
			c := random("a", 200_000)
			f.put(c)
			first, err := f.Open(f.ctx, c.hash(), 0, -1)
			f.must(err)
			second, err := f.Open(f.ctx, c.hash(), 0, -1)
			f.must(err)
			var got [2]bytes.Buffer
			for got[0].Len() < len(c) {
				_, err = io.CopyN(&got[0], first, 50_000)
				f.must(err)
				_, err = io.CopyN(&got[1], second, 50_000)
				f.must(err)
			}
			f.must(first.Close())
			f.must(second.Close())
			if !bytes.Equal(got[0].Bytes(), c) || !bytes.Equal(got[1].Bytes(), c) {
				f.Fatal("two readers of one content interfered")
			}
		}},
	}
}

func readParts(f *fixture) {
	c := random("a", f.largest())
	size := int64(len(c))
	f.put(c)
	for _, part := range []struct{ offset, length, want int64 }{
		{0, -1, size},
		{0, size, size},
		{0, 1, 1},
		{0, 0, 0},
		{1, -1, size - 1},
		{7, 1000, 1000},
		{size - 1, 1, 1},
		{size - 1, -1, 1},
		{size - 10, 1000, 10},
		{size / 2, size, size - size/2},
		{size / 2, 0, 0},
		{size, -1, 0},
		{size, 10, 0},
	} {
		got, err := f.read(c.hash(), part.offset, part.length)
		if err != nil {
			f.Fatalf("%d bytes from %d of %d: %v", part.length, part.offset, size, err)
		}
		if !bytes.Equal(got, c[part.offset:part.offset+part.want]) {
			f.Fatalf("%d bytes from %d of %d: got %d that are wrong, want %d", part.length, part.offset, size, len(got), part.want)
		}
	}
	empty := content(nil)
	f.put(empty)
	if got, err := f.read(empty.hash(), 0, 10); err != nil || len(got) != 0 {
		f.Fatalf("of an empty content: got %d bytes, error %v", len(got), err)
	}
}

func deleteTests() []test {
	return []test{
		{"a deleted content is not found", func(f *fixture) {
			a, b := random("a", 70_000), random("b", 70_000)
			f.put(a)
			f.put(b)
			f.must(f.Delete(f.ctx, a.hash()))
			f.lacks(a.hash())
			f.holds(b)
			f.lists(10, b)
		}},
		{"deleting an unknown hash is no error", func(f *fixture) {
			c := random("a", 10)
			f.must(f.Delete(f.ctx, c.hash()))
			f.put(c)
			f.must(f.Delete(f.ctx, c.hash()))
			f.must(f.Delete(f.ctx, c.hash()))
		}},
		{"a deleted content can be stored again", func(f *fixture) {
			c := random("a", 70_000)
			for range 3 {
				f.put(c)
				f.holds(c)
				f.must(f.Delete(f.ctx, c.hash()))
				f.lacks(c.hash())
			}
		}},
	}
}

func contextTests() []test {
	return []test{
		{"every method honors its context", func(f *fixture) {
			c := random("a", 70_000)
			hash := f.put(c)
			other := random("b", 70_000)
			staged := f.stage(other)
			ended, cancel := context.WithCancel(f.ctx)
			cancel()
			for name, act := range map[string]func() error{
				"Stage":           func() error { _, err := f.Stage(ended); return err },
				"Commit":          func() error { return staged.Commit(ended, other.hash()) },
				"Stat":            func() error { _, _, err := f.Stat(ended, hash); return err },
				"Open":            func() error { _, err := f.Open(ended, hash, 0, -1); return err },
				"Delete":          func() error { return f.Delete(ended, hash) },
				"List":            func() error { _, _, err := f.List(ended, "", 10); return err },
				"RemoveAbandoned": func() error { _, err := f.RemoveAbandoned(ended, time.Now()); return err },
				"Ping":            func() error { return f.Ping(ended) },
			} {
				if err := act(); errs.KindOf(err) != errs.Canceled {
					f.Errorf("%s: got the error %v, want one of kind %q", name, err, errs.Canceled)
				}
			}
			f.holds(c)
		}},
		{"a stage can be discarded after its context has ended", func(f *fixture) {
			ctx, cancel := context.WithCancel(f.ctx)
			s, err := f.write(ctx, random("a", f.largest()))
			f.must(err)
			cancel()
			s.Discard()
			f.tidies(0, time.Hour)
		}},
		{"a reader fails when its context ends", func(f *fixture) {
			c := random("a", f.largest())
			f.put(c)
			ctx, cancel := context.WithCancel(f.ctx)
			r, err := f.Open(ctx, c.hash(), 0, -1)
			f.must(err)
			cancel()
			// Buffered bytes may still arrive.
			f.eventually(10*time.Second, func() error {
				if n, err := r.Read(make([]byte, 1)); n > 0 {
					return errs.New(errs.Internal, "bytes still arrive")
				} else if err == nil || err == io.EOF { //nolint:errorlint // what a reader says itself
					f.Fatalf("the reading ended with %v, as if nothing had happened", err)
				}
				return nil
			})
			_ = r.Close()
		}},
		{"Ping succeeds", func(f *fixture) { f.must(f.Ping(f.ctx)) }},
	}
}

// signTests are for a storage that is a driver.Signer.
func signTests() []test {
	return []test{
		{"a signed URL returns the content", func(f *fixture) {
			signer, ok := f.Storage.(driver.Signer)
			if !ok {
				return
			}
			c := random("a", 70_000)
			f.put(c)
			headers := driver.SignedHeaders{
				ContentType: "image/png", ContentDisposition: `attachment; filename="a b.png"`, CacheControl: "private, no-cache",
			}
			url, err := signer.Sign(f.ctx, c.hash(), headers, time.Minute)
			f.must(err)
			req, err := http.NewRequestWithContext(f.ctx, http.MethodGet, url, nil)
			f.must(err)
			res, err := cmp.Or(f.harness.Client, http.DefaultClient).Do(req)
			f.must(err)
			defer func() { _ = res.Body.Close() }()
			got, err := io.ReadAll(res.Body)
			f.must(err)
			if res.StatusCode != http.StatusOK || !bytes.Equal(got, c) {
				f.Fatalf("status %s with %d bytes, want the %d of the content", res.Status, len(got), len(c))
			}
			for name, want := range map[string]string{
				"Content-Type": headers.ContentType, "Content-Disposition": headers.ContentDisposition, "Cache-Control": headers.CacheControl,
			} {
				if got := res.Header.Get(name); got != want {
					f.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		}},
	}
}
