package migrate_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/binary/filestorage"
	"belfry/pkg/operations/migrate"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

// fixture is the source and the destination of a store.
type fixture struct {
	*testing.T
	from, to *store.Store
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, from: open(t), to: open(t)}
}

func open(t *testing.T) *store.Store {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Books"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put writes a record without publishing: the event of the write stays pending. An empty
// body is a delete.
func (w *fixture) put(s *store.Store, uuid string, revision uint64, body string, also ...string) {
	w.Helper()
	write := driver.Write{UUID: uuid, Revision: revision, Event: eventOf(uuid, revision)}
	if body != "" {
		write.Body = []byte(body)
	}
	for _, id := range also {
		write.ExtraEvents = append(write.ExtraEvents,
			driver.Event{ID: id, Subject: "events." + uuid, Payload: []byte(id)})
	}
	if there, found, err := s.Driver().Get(w.Context(), uuid); err != nil {
		w.Fatal(err)
	} else if found && !there.Deleted {
		write.IfRevision = there.Revision
	}
	if err := s.Driver().Put(w.Context(), write); err != nil {
		w.Fatal(err)
	}
}

func eventOf(uuid string, revision uint64) driver.Event {
	id := fmt.Sprintf("%s@%d", uuid, revision)
	return driver.Event{ID: id, Subject: "events." + uuid, Payload: []byte("payload of " + id)}
}

// publish clears the pending events, like a relay.
func (w *fixture) publish(s *store.Store) {
	w.Helper()
	if err := s.Driver().Clear(w.Context(), w.pending(s)); err != nil {
		w.Fatal(err)
	}
}

func (w *fixture) pending(s *store.Store) []driver.Pending {
	w.Helper()
	var all []driver.Pending
	for after := []byte(nil); ; {
		events, next, err := s.Driver().Pending(w.Context(), after, 100)
		if err != nil {
			w.Fatal(err)
		}
		if all = append(all, events...); next == nil {
			return all
		}
		after = next
	}
}

// ids returns the IDs of the pending events of an object in order.
func (w *fixture) ids(s *store.Store, uuid string) []string {
	w.Helper()
	var ids []string
	for _, e := range w.pending(s) {
		if e.UUID == uuid {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func (w *fixture) wantRecord(s *store.Store, uuid string, revision uint64, body string) {
	w.Helper()
	r, found, err := s.Driver().Get(w.Context(), uuid)
	if err != nil {
		w.Fatal(err)
	}
	if !found || r.Revision != revision || string(r.Body) != body || r.Deleted != (body == "") {
		w.Errorf("%s is there: %v, at %d, deleted %v: %s; want %s at %d", uuid, found, r.Revision, r.Deleted, r.Body,
			body, revision)
	}
}

func (w *fixture) wantNone(s *store.Store, uuid string) {
	w.Helper()
	if _, found, err := s.Driver().Get(w.Context(), uuid); err != nil || found {
		w.Errorf("%s is there (%v)", uuid, err)
	}
}

func (w *fixture) move() *migrate.Result {
	w.Helper()
	r, err := migrate.Store(w.Context(), w.from, w.to, nil)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// moved migrates and asserts the number of records, of copied ones, and the
// differences.
func (w *fixture) moved(records, copied int64, differences ...string) *migrate.Result {
	w.Helper()
	r := w.move()
	if r.Records != records || r.Copied != copied ||
		!slices.Equal(r.Differences, differences) && len(r.Differences)+len(differences) > 0 {
		w.Errorf("%d records, %d copied, differences %q; want %d, %d, %q", r.Records, r.Copied, r.Differences, records,
			copied, differences)
	}
	return r
}

// storage is a storage in a folder.
type storage struct {
	*filestorage.Storage
	folder string
}

func newStorage(t *testing.T) *storage {
	t.Helper()
	folder := t.TempDir()
	s, err := filestorage.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &storage{s, folder}
}

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// store commits a content and returns its hash.
func (s *storage) store(t *testing.T, content string) string {
	t.Helper()
	staged, err := s.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Discard()
	if _, err := staged.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := staged.Commit(t.Context(), hashOf(content)); err != nil {
		t.Fatal(err)
	}
	return hashOf(content)
}

// corrupt changes a content in its file.
func (s *storage) corrupt(t *testing.T, hash, content string) {
	t.Helper()
	done := false
	err := filepath.WalkDir(s.folder, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, hash) {
			done = true
			if err = os.Chmod(path, 0o600); err == nil {
				err = os.WriteFile(path, []byte(content), 0o600)
			}
		}
		return err
	})
	if err != nil || !done {
		t.Fatalf("corrupting %s: %v", hash, err)
	}
}

func (s *storage) there(ctx context.Context, t *testing.T, hash string) bool {
	t.Helper()
	_, found, err := s.Stat(ctx, hash)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
