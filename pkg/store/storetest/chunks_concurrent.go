package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// entriesDuringChanges has writers give the same title to entries of several chunks, each at the revision that it read,
// while another one writes the object whole. Any read has one title in all of them.
func entriesDuringChanges(f *fixture) {
	s := f.open("Books", byColor)
	chunks := s.entryStore()
	if chunks == nil {
		return
	}
	d := keyed("color", "red").of(0, 1000)
	changed := []string{"e00000", "e00250", "e00500", "e00750", "e00999"}
	titled := func(title int) (all []driver.Entry) {
		for _, uuid := range changed {
			all = append(all, driver.Entry{UUID: uuid, Value: entryOf(uuid, fmt.Sprintf("t%05d", title))})
		}
		return all
	}
	for _, e := range titled(0) {
		d = d.set(e.UUID, e.Value)
	}
	s.put("a", 0, 1, d)
	checkWhole := func(r driver.Record) error {
		if r.UUID != "a" || bytes.Count(r.Body, []byte(`{"uuid":"e`)) != 1000 {
			return fmt.Errorf("got %s", describe(r))
		}
		_, rest, _ := bytes.Cut(r.Body, []byte(`"title":"t`))
		if title := rest[:5]; bytes.Count(r.Body, append([]byte(`"title":"t`), title...)) != len(changed) {
			return fmt.Errorf("entries have other titles than t%s at revision %d", title, r.Revision)
		}
		return nil
	}
	ended := make(chan struct{})
	var readers sync.WaitGroup
	failures := make([]error, 3)
	reading := func(i int, read func() error) {
		readers.Go(func() {
			for failures[i] == nil {
				select {
				case <-ended:
					return
				default:
					failures[i] = read()
				}
			}
		})
	}
	reading(0, func() error {
		r, _, err := s.Get(f.ctx, "a")
		return errors.Join(err, checkWhole(r))
	})
	reading(1, func() error {
		page, err := s.Scan(f.ctx, nil, 10)
		if err != nil || len(page.Records) != 1 {
			return fmt.Errorf("%d records, %w", len(page.Records), err)
		}
		return checkWhole(page.Records[0])
	})
	reading(2, func() error {
		_, entries, _, err := chunks.GetEntries(f.ctx, "a", arrayField, changed)
		if err != nil {
			return err
		}
		titles := map[string]bool{}
		for _, value := range entries.Values {
			titles[strings.SplitN(string(value), `"title":"`, 2)[1][:6]] = true
		}
		if len(entries.Values) != len(changed) || len(titles) != 1 {
			return fmt.Errorf("%d entries have the titles %v", len(entries.Values), titles)
		}
		return nil
	})
	const writers = 3
	f.concurrently(writers, func(i int) error {
		for n := range f.times(15) {
			err := error(errs.New(errs.Mismatch, "not yet"))
			for errors.Is(err, errs.Mismatch) {
				if i == 0 {
					err = s.rewrite("a")
				} else {
					err = s.retitle("a", titled(writers*n+i))
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	close(ended)
	readers.Wait()
	f.must(errors.Join(failures...))
}

// retitle changes entries at the revision that it reads.
func (s *testStore) retitle(uuid string, entries []driver.Entry) error {
	r, _, _, err := s.entryStore().GetEntries(s.f.ctx, uuid, arrayField, nil)
	if err != nil {
		return err
	}
	w := s.write(uuid, r.Revision, r.Revision+1, keyed("color", "red"))
	w.Body, w.Array, w.Entries = r.Body, arrayField, entries
	return s.Put(s.f.ctx, w)
}

// rewrite writes an object as it reads it.
func (s *testStore) rewrite(uuid string) error {
	r, _, err := s.Get(s.f.ctx, uuid)
	if err != nil {
		return err
	}
	w := s.write(uuid, r.Revision, r.Revision+1, keyed("color", "red"))
	w.Body = r.Body
	return s.Put(s.f.ctx, w)
}
