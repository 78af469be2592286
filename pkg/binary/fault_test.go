package binary_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// hooked is a backend with hooks before and after a write to Books.
type hooked struct {
	driver.Backend
	before func()
	refuse bool // the next write
	after  func(error) error
}

func (h *hooked) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := h.Backend.Open(ctx, spec)
	if spec.Name == "Books" {
		s = hookedStore{s, h}
	}
	return s, err
}

type hookedStore struct {
	driver.Store
	h *hooked
}

// Put calls each hook once: writes of a hook have no hooks.
func (s hookedStore) Put(ctx context.Context, w driver.Write) error {
	before, refuse, after := s.h.before, s.h.refuse, s.h.after
	s.h.before, s.h.refuse, s.h.after = nil, false, nil
	if before != nil {
		before()
	}
	var err error
	if !refuse {
		err = s.Store.Put(ctx, w)
	}
	if after != nil {
		err = after(err)
	}
	return err
}

func newHookedFixture(t *testing.T, c *clock) (*fixture, *hooked) {
	t.Helper()
	h := &hooked{}
	f := newFixture(t, options{
		backend: func(b driver.Backend) driver.Backend { h.Backend = b; return h },
		service: func(o *binary.Options) { o.Now, o.RetryTimeout = c.now, time.Second },
	})
	f.clock = c
	f.SetWait(func(ctx context.Context, d time.Duration) error {
		c.Time = c.Add(d)
		return ctx.Err()
	})
	return f, h
}

// sweep runs all steps of a sweeper.
func (f *fixture) sweep() {
	f.Helper()
	due, err := f.DueAt(f.Context(), f.clock.now())
	f.must(err)
	for _, e := range due.Entries {
		e, err := f.MarkForDeletion(f.Context(), e)
		f.must(err)
		_, err = f.DeleteMarked(f.Context(), e)
		f.must(err)
	}
}

// An upload may take long: a sweeper marks and deletes its content between the
// commit and the write of the record. No entry exists before and none remains.
func TestUploadSurvivesASweepBetweenCommitAndRecord(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	f, h := newHookedFixture(t, c)
	book := f.save("Books", `{}`)
	h.before = func() {
		f.must(f.MarkCandidate(t.Context(), hashOf("a")))
		c.Time = c.Add(2 * time.Hour)
		f.sweep()
		if f.stored()[hashOf("a")] {
			t.Error("the test wants the content swept")
		}
	}
	f.reads(f.add(book, "a").Record, "a")
}

// stuck sets the state that a sweeper leaves when it dies while it deletes a content.
func (f *fixture) stuck(hash string) {
	f.Helper()
	o := object.Object{}
	o.Set("service", "files")
	o.Set("hash", hash)
	o.Set("state", binary.Deleting)
	o.Set("due", "2999-01-01T00:00:00.000000Z")
	_, err := f.entries.Save(f.Context(), o, "files."+hash)
	f.must(err)
	f.must(f.storage.Delete(f.Context(), hash))
}

func TestRecordWithoutContentIsRolledBack(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	f, h := newHookedFixture(t, c)
	book := f.save("Books", `{}`)
	first := f.add(book, "first")
	f.outbox.take()
	for _, index := range []int{0, 1} {
		h.after = func(err error) error {
			f.stuck(hashOf("new"))
			return err
		}
		_, err := f.Put(t.Context(), upload(photo(book, index), "new"))
		f.kind(err, errs.Unavailable)
		if hashes := f.photos(book); !slices.Equal(hashes, []string{hashOf("first")}) {
			t.Errorf("at %d: the book has %v", index, hashes)
		}
		f.reads(first.Record, "first")
		f.must(f.entries.Delete(t.Context(), "files."+hashOf("new"), 0))
	}
	var events []event.Name
	for _, e := range f.outbox.take() {
		events = append(events, e.Event)
	}
	if want := []event.Name{
		event.StoreUpdated, event.BinaryUploaded, event.StoreUpdated, event.BinaryDeleted, event.BinaryUploaded,
		event.StoreUpdated, event.BinaryUploaded, event.StoreUpdated, event.BinaryDeleted,
	}; !slices.Equal(events, want) {
		t.Errorf("events were %v, want %v", events, want)
	}
}

// The rollback of an upload does not restore a replaced record without its content.
func TestRollbackRestoresNoRecordWithoutContent(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	f, h := newHookedFixture(t, c)
	book := f.save("Books", `{}`)
	f.add(book, "first")
	h.after = func(err error) error {
		f.stuck(hashOf("new"))
		f.must(f.storage.Delete(t.Context(), hashOf("first")))
		return err
	}
	_, err := f.Put(t.Context(), upload(photo(book, 0), "new"))
	f.kind(err, errs.Unavailable)
	if hashes := f.photos(book); len(hashes) > 0 {
		t.Errorf("the book has %v", hashes)
	}
}

// A store that returns an error may have written or not: in both cases there is no
// record without content.
func TestWriteWithUnknownOutcomeLeavesNoRecordWithoutContent(t *testing.T) {
	t.Parallel()
	unavailable := errs.New(errs.Unavailable, "unavailable")
	for name, written := range map[string]bool{"written": true, "not written": false} {
		t.Run(name, func(t *testing.T) {
			c := &clock{time.Now()}
			f, h := newHookedFixture(t, c)
			book := f.save("Books", `{}`)
			ctx, cancel := context.WithCancel(t.Context())
			h.after = func(error) error {
				cancel()
				f.must(f.MarkCandidate(t.Context(), hashOf("a"))) // as a concurrent sweeper does
				f.must(f.storage.Delete(t.Context(), hashOf("a")))
				return unavailable
			}
			h.refuse = !written
			_, err := f.Put(ctx, upload(photo(book, 0), "a"))
			f.kind(err, errs.Unavailable)
			if n := len(f.photos(book)); n == 1 != written || !f.stored()[hashOf("a")] ||
				f.states()[hashOf("a")] != "candidate" {
				t.Errorf("the book has %d photos, kept are %v, noted %v", n, f.stored(), f.states())
			}
			c.Time = c.Add(2 * time.Hour)
			f.sweep()
			if f.stored()[hashOf("a")] != written || len(f.states()) > 0 {
				t.Errorf("after a sweep kept are %v, noted %v", f.stored(), f.states())
			}
		})
	}
}

// Other clients may write the object during an upload.
func TestObjectMayChangeDuringAnUpload(t *testing.T) {
	t.Parallel()
	c := &clock{time.Now()}
	f, _ := newHookedFixture(t, c)
	book := f.save("Books", `{}`)
	title := object.Object{"title": []byte(`"x"`)}
	body := func(then func()) *hookedBody { return &hookedBody{then: then} }
	up := upload(photo(book, 0), "a")
	up.Size, up.Body = -1, body(func() {
		_, err := f.set.Store("Books").Update(t.Context(), title, store.UpdateOptions{UUID: book})
		f.must(err)
	})
	_, err := f.Put(t.Context(), up)
	f.must(err)
	up.IfRevision, up.Body = f.object("Books", book).Revision, body(func() {
		_, err := f.set.Store("Books").Update(t.Context(), title, store.UpdateOptions{UUID: book})
		f.must(err)
	})
	f.refused(t.Context(), up, errs.Mismatch)
	up.IfRevision, up.Body = 0, body(func() { f.must(f.set.Store("Books").Delete(t.Context(), book, 0)) })
	f.refused(t.Context(), up, errs.NotFound)
}

// hookedBody is a body that calls a hook while it is read.
type hookedBody struct{ then func() }

func (b *hookedBody) Read(data []byte) (int, error) {
	b.then()
	return copy(data, "late"), io.EOF
}

// Only the sweeper changes the entry of a deletion in progress.
func TestContentBeingDeletedCanNotBeMarked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.stuck(hashOf("a"))
	f.kind(f.MarkCandidate(t.Context(), hashOf("a")), errs.Conflict)
	if state := f.states()[hashOf("a")]; state != "deleting" {
		t.Errorf("the entry is %q", state)
	}
}

// A sweeper is suspended right before it deletes a content. When its lease has
// ended another sweeper deletes the content, and an upload stores it again.
func TestDeletionAfterTheLeaseIsReported(t *testing.T) {
	t.Parallel()
	f, _ := newHookedFixture(t, &clock{time.Now()})
	book := f.save("Books", `{}`)
	f.add(book, "a")
	_, err := f.Delete(t.Context(), photo(book, 0), hashOf("a"))
	f.must(err)
	f.must(f.MarkCandidate(t.Context(), hashOf("a")))
	f.clock.Time = f.clock.Add(2 * time.Hour)
	due, err := f.DueAt(t.Context(), f.clock.now())
	f.must(err)
	marked, err := f.MarkForDeletion(t.Context(), due.Entries[0])
	f.must(err)
	f.storage.beforeDelete = func() {
		f.clock.Time = f.clock.Add(time.Hour)
		f.sweep()
		f.add(book, "a")
	}
	deleted, err := f.DeleteMarked(t.Context(), marked)
	f.kind(err, errs.Internal)
	if !deleted || !strings.Contains(err.Error(), "photos/0") {
		t.Errorf("deleted %v, error %v; want one about the binary", deleted, err)
	}
}
