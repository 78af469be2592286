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
		{"parts are read", readParts},
		{"what is not there is not found", func(w *world) {
			w.lacks(random("a", 1).hash())
			_, err := w.Open(w.ctx, random("a", 1).hash(), 5, 5)
			w.wantKind(err, errs.NotFound)
		}},
		{"a reader may be closed early", func(w *world) {
			c := random("a", w.largest())
			w.put(c)
			r, err := w.Open(w.ctx, c.hash(), 0, -1)
			w.must(err)
			_, err = io.ReadFull(r, make([]byte, 100))
			w.must(err)
			w.must(r.Close())
			w.holds(c)
		}},
		{"readers side by side are their own", func(w *world) {
			c := random("a", 200_000)
			w.put(c)
			first, err := w.Open(w.ctx, c.hash(), 0, -1)
			w.must(err)
			second, err := w.Open(w.ctx, c.hash(), 0, -1)
			w.must(err)
			var got [2]bytes.Buffer
			for got[0].Len() < len(c) {
				_, err = io.CopyN(&got[0], first, 50_000)
				w.must(err)
				_, err = io.CopyN(&got[1], second, 50_000)
				w.must(err)
			}
			w.must(first.Close())
			w.must(second.Close())
			if !bytes.Equal(got[0].Bytes(), c) || !bytes.Equal(got[1].Bytes(), c) {
				w.Fatal("two readers of one content disturbed each other")
			}
		}},
	}
}

func readParts(w *world) {
	c := random("a", w.largest())
	size := int64(len(c))
	w.put(c)
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
		got, err := w.read(c.hash(), part.offset, part.length)
		if err != nil {
			w.Fatalf("%d bytes from %d of %d: %v", part.length, part.offset, size, err)
		}
		if !bytes.Equal(got, c[part.offset:part.offset+part.want]) {
			w.Fatalf("%d bytes from %d of %d: got %d that are wrong, want %d", part.length, part.offset, size, len(got), part.want)
		}
	}
	empty := content(nil)
	w.put(empty)
	if got, err := w.read(empty.hash(), 0, 10); err != nil || len(got) != 0 {
		w.Fatalf("of an empty content: got %d bytes, error %v", len(got), err)
	}
}

func deleteTests() []test {
	return []test{
		{"what is deleted is gone", func(w *world) {
			a, b := random("a", 70_000), random("b", 70_000)
			w.put(a)
			w.put(b)
			w.must(w.Delete(w.ctx, a.hash()))
			w.lacks(a.hash())
			w.holds(b)
			w.lists(10, b)
		}},
		{"that nothing is there is no error", func(w *world) {
			c := random("a", 10)
			w.must(w.Delete(w.ctx, c.hash()))
			w.put(c)
			w.must(w.Delete(w.ctx, c.hash()))
			w.must(w.Delete(w.ctx, c.hash()))
		}},
		{"it can be kept anew", func(w *world) {
			c := random("a", 70_000)
			for range 3 {
				w.put(c)
				w.holds(c)
				w.must(w.Delete(w.ctx, c.hash()))
				w.lacks(c.hash())
			}
		}},
	}
}

func contextTests() []test {
	return []test{
		{"an ended context ends every act", func(w *world) {
			c := random("a", 70_000)
			hash := w.put(c)
			other := random("b", 70_000)
			staged := w.stage(other)
			ended, cancel := context.WithCancel(w.ctx)
			cancel()
			for name, act := range map[string]func() error{
				"Stage":  func() error { _, err := w.Stage(ended); return err },
				"Commit": func() error { return staged.Commit(ended, other.hash()) },
				"Stat":   func() error { _, _, err := w.Stat(ended, hash); return err },
				"Open":   func() error { _, err := w.Open(ended, hash, 0, -1); return err },
				"Delete": func() error { return w.Delete(ended, hash) },
				"List":   func() error { _, _, err := w.List(ended, "", 10); return err },
				"Tidy":   func() error { _, err := w.Tidy(ended, time.Now()); return err },
				"Ping":   func() error { return w.Ping(ended) },
			} {
				if err := act(); errs.KindOf(err) != errs.Canceled {
					w.Errorf("%s: got the error %v, want one of kind %q", name, err, errs.Canceled)
				}
			}
			w.holds(c)
		}},
		{"a stage is discarded after its context has ended", func(w *world) {
			ctx, cancel := context.WithCancel(w.ctx)
			s, err := w.write(ctx, random("a", w.largest()))
			w.must(err)
			cancel()
			s.Discard()
			w.tidies(0, time.Hour)
		}},
		{"a reader breaks off when its context ends", func(w *world) {
			c := random("a", w.largest())
			w.put(c)
			ctx, cancel := context.WithCancel(w.ctx)
			r, err := w.Open(ctx, c.hash(), 0, -1)
			w.must(err)
			cancel()
			// What is on its way already may still arrive.
			w.eventually(10*time.Second, func() error {
				if n, err := r.Read(make([]byte, 1)); n > 0 {
					return errs.New(errs.Internal, "bytes still arrive")
				} else if err == nil || err == io.EOF { //nolint:errorlint // what a reader says itself
					w.Fatalf("the reading ended with %v, as if nothing had happened", err)
				}
				return nil
			})
			_ = r.Close()
		}},
		{"the storage answers", func(w *world) { w.must(w.Ping(w.ctx)) }},
	}
}

// signTests are for a storage that is a driver.Signer.
func signTests() []test {
	return []test{
		{"a signed URL gives the content", func(w *world) {
			signer, ok := w.Storage.(driver.Signer)
			if !ok {
				return
			}
			c := random("a", 70_000)
			w.put(c)
			headers := driver.SignedHeaders{
				ContentType: "image/png", ContentDisposition: `attachment; filename="a b.png"`, CacheControl: "private, no-cache",
			}
			url, err := signer.Sign(w.ctx, c.hash(), headers, time.Minute)
			w.must(err)
			req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
			w.must(err)
			res, err := cmp.Or(w.harness.Client, http.DefaultClient).Do(req)
			w.must(err)
			defer func() { _ = res.Body.Close() }()
			got, err := io.ReadAll(res.Body)
			w.must(err)
			if res.StatusCode != http.StatusOK || !bytes.Equal(got, c) {
				w.Fatalf("status %s with %d bytes, want the %d of the content", res.Status, len(got), len(c))
			}
			for name, want := range map[string]string{
				"Content-Type": headers.ContentType, "Content-Disposition": headers.ContentDisposition, "Cache-Control": headers.CacheControl,
			} {
				if got := res.Header.Get(name); got != want {
					w.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		}},
	}
}
