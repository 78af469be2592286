package filestore

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/store/driver"
)

// titled are entries of several chunks with one title.
func titled(title uint64) (entries []driver.Entry) {
	for _, uuid := range []string{"e0000", "e0250", "e0500", "e0750", "e0999"} {
		value := fmt.Appendf(nil, `{"uuid":%q,"t":"%06d"}`, uuid, title)
		entries = append(entries, driver.Entry{UUID: uuid, Value: value})
	}
	return entries
}

// After a power failure an array in chunks has all entries of one write: of the last acknowledged one, or a later one.
func TestArraysInChunksSurviveAPowerFailure(t *testing.T) {
	const entries = 1000
	all := make([]string, entries)
	for i := range all {
		all[i] = fmt.Sprintf(`{"uuid":"e%04d","title":%q}`, i, strings.Repeat("x", 80))
	}
	for _, e := range titled(1) {
		for i := range all {
			if strings.HasPrefix(all[i], `{"uuid":"`+e.UUID) {
				all[i] = string(e.Value)
			}
		}
	}
	body := []byte(`{"books":[` + strings.Join(all, ",") + `]}`)
	open := func(fs vfs.FS) (*Backend, *store) {
		b, err := Open("/data/stores", Options{MemTableBytes: 256 << 10, FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		s, err := b.Open(t.Context(), driver.Spec{Name: "Shelves", Arrays: []string{"books"}})
		if err != nil {
			t.Fatal(err)
		}
		return b, s.(*store)
	}
	for seed := range 4 {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			b, s := open(fs)
			if err := s.Put(t.Context(), driver.Write{UUID: "a", Revision: 1, Body: body}); err != nil {
				t.Fatal(err)
			}
			var acknowledged atomic.Uint64
			stop, reached := make(chan struct{}), make(chan struct{})
			var writing sync.WaitGroup
			writing.Go(func() {
				for n := uint64(2); ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := change(s, n); err != nil {
						t.Error(err)
						return
					}
					if acknowledged.Store(n); n == uint64(20+30*seed) { //nolint:gosec // small
						close(reached)
					}
				}
			})
			<-reached
			least := acknowledged.Load()
			after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50,
				RNG: rand.New(rand.NewPCG(uint64(seed), 3))})
			close(stop)
			writing.Wait()
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b, s = open(after)
			r, _, err := s.Get(t.Context(), "a")
			if err != nil || r.Revision < least || bytes.Count(r.Body, []byte(`{"uuid":"e`)) != entries {
				t.Fatalf("revision %d of %d, %d bytes, %v", r.Revision, least, len(r.Body), err)
			}
			for _, e := range titled(r.Revision) {
				if !bytes.Contains(r.Body, e.Value) {
					t.Errorf("revision %d lacks the entry %s", r.Revision, e.Value)
				}
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// change gives entries the title of a revision; each seventh write is of the whole object.
func change(s *store, revision uint64) error {
	ctx := context.Background()
	w := driver.Write{UUID: "a", IfRevision: revision - 1, Revision: revision}
	if revision%7 != 0 {
		r, _, _, err := s.GetEntries(ctx, "a", "books", nil)
		if err != nil {
			return err
		}
		w.Body, w.Array, w.Entries = r.Body, "books", titled(revision)
		return s.Put(ctx, w)
	}
	r, _, err := s.Get(ctx, "a")
	if err != nil {
		return err
	}
	w.Body = r.Body
	for i, former := range titled(revision - 1) {
		w.Body = bytes.Replace(w.Body, former.Value, titled(revision)[i].Value, 1)
	}
	return s.Put(ctx, w)
}
