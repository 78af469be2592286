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
		{"an unknown hash is not found", func(f *fixture) {
			f.lacks(random("a", 1).hash())
			_, err := f.Open(f.ctx, random("a", 1).hash(), 5, 5)
			f.wantKind(err, errs.NotFound)
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
				ContentType: "image/png", ContentDisposition: `attachment; filename="a b.png"`,
				CacheControl: "private, no-cache",
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
				"Content-Type": headers.ContentType, "Content-Disposition": headers.ContentDisposition,
				"Cache-Control": headers.CacheControl,
			} {
				if got := res.Header.Get(name); got != want {
					f.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		}},
	}
}
