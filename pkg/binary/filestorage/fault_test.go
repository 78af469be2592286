package filestorage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
)

// watched is a storage whose syncs are recorded, and can be made to fail.
type watched struct {
	*Storage
	t      *testing.T
	folder string
	synced []string
	fail   map[string]error // by what is synced
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, folder: t.TempDir(), fail: map[string]error{}}
	s, err := Open(w.folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w.Storage = s
	s.sync = func(f *os.File) error {
		name, err := filepath.Rel(w.folder, f.Name())
		if err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(name, "tmp/stage-") {
			name = "the stage"
		}
		w.synced = append(w.synced, name)
		return errors.Join(f.Sync(), w.fail[name])
	}
	return w
}

// commit keeps a text, and returns what was synced until that was acknowledged.
func (w *watched) commit(text string) (hash string, synced []string, err error) {
	w.t.Helper()
	sum := sha256.Sum256([]byte(text))
	hash = hex.EncodeToString(sum[:])
	staged, err := w.stage(w.t.Context())
	if err != nil {
		return hash, nil, err
	}
	defer staged.Discard()
	if _, err := staged.Write([]byte(text)); err != nil {
		return hash, nil, err
	}
	w.synced = nil
	err = staged.Commit(w.t.Context(), hash)
	return hash, w.synced, err
}

// What is acknowledged is on the disk: the bytes are synced before the name, and the
// name before that of its folder, also when another process has made the name.
func TestCommitsAreSynced(t *testing.T) {
	t.Parallel()
	w := watch(t)
	hash, first, err := w.commit("a")
	_, again, failed := w.commit("a")
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if want := []string{"the stage", shard(hash), hash[:2], "."}; !slices.Equal(first, want) {
		t.Errorf("synced were %q, want %q", first, want)
	}
	if want := []string{"the stage", shard(hash)}; !slices.Equal(again, want) {
		t.Errorf("for a content that was there, synced were %q, want %q", again, want)
	}
}

// A stage that could not be synced is discarded, and nothing else.
func TestFailedSyncDiscardsTheStage(t *testing.T) {
	t.Parallel()
	w := watch(t)
	w.fail["the stage"] = os.ErrDeadlineExceeded
	staged, err := w.stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Discard()
	for range 2 {
		if err := staged.Commit(t.Context(), zeros); !errors.Is(err, errs.Unavailable) {
			t.Errorf("got %v", err)
		}
		w.fail = nil // the second failure proves nothing
	}
	if _, found, err := w.Stat(t.Context(), zeros); found || err != nil {
		t.Errorf("found %v, error %v", found, err)
	}
	if _, _, err := w.commit("a"); err != nil {
		t.Error(err)
	}
}

// Operations after a failed sync of a folder are refused: the state of the disk is
// unknown.
func TestFailedSyncOfAFolderStopsTheStorage(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"ca/97", "ca", "."} {
		w := watch(t)
		cause := errors.New("the disk has failed")
		w.fail[folder] = cause
		_, _, err := w.commit("a")
		w.fail = nil
		_, _, again := w.commit("b")
		for name, err := range map[string]error{"the commit": err, "another one": again, "Ping": w.Ping(t.Context())} {
			if !errors.Is(err, errs.Unavailable) || !errors.Is(err, cause) {
				t.Errorf("%s after %s: %v", name, folder, err)
			}
		}
	}
}
