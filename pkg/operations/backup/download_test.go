package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/binary/filestorage"
)

// extract extracts an archive as tar does, and returns the names of its files.
func extract(t *testing.T, archive []byte, to string) (names []string, err error) {
	t.Helper()
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return names, err
		}
		if !filepath.IsLocal(h.Name) || h.Mode&0o077 != 0 {
			t.Errorf("the archive has %s, mode %o", h.Name, h.Mode)
		}
		path := filepath.Join(to, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return names, err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// A download is a destination, with one backup and nothing of others.
func TestADownloadedBackupIsRestored(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 20)
	first := f.make()
	want := f.model()
	f.must(f.content(strings.Repeat("of the second", 1000)))
	second := f.make()
	var archive, other bytes.Buffer
	f.must(WriteTar(t.Context(), f.destination(), first, &archive))
	f.must(WriteTar(t.Context(), f.destination(), second, &other))
	if other.Len() < archive.Len()+10_000 {
		t.Errorf("the first backup has %d bytes as the second, which has %d", archive.Len(), other.Len())
	}

	folder := t.TempDir()
	names, err := extract(t, archive.Bytes(), folder)
	f.must(err)
	if last := names[len(names)-1]; last != FolderOf(first.ID)+"/documents/backup-"+first.ID+".json" {
		t.Errorf("the last file is %s", last)
	}
	if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a file is there twice: %q", names)
	}
	f.dest, err = filestorage.OpenExisting(filepath.Join(folder, FolderOf(first.ID)))
	f.must(err)
	defer func() { _ = f.dest.Close() }()
	ids, err := f.destination().IDs(t.Context())
	f.must(err)
	if !slices.Equal(ids, []string{first.ID}) {
		t.Fatalf("the download has the backups %q", ids)
	}
	m, err := f.destination().Manifest(t.Context(), first.ID)
	f.must(err)
	f.must(Verify(t.Context(), f.destination(), m, nil))
	r, err := f.restore(m)
	f.must(err)
	if got := r.model(); !slices.Equal(got, want) {
		t.Errorf("restored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Wherever a download is cut, it has no backup; and one with a damaged part is not completed.
func TestADownloadThatIsCutHasNoBackup(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 5)
	m := f.make()
	var whole bytes.Buffer
	f.must(WriteTar(t.Context(), f.destination(), m, &whole))
	for cut := 0; cut < whole.Len()-4096; cut += max(1, whole.Len()/7) {
		folder := t.TempDir()
		_, _ = extract(t, whole.Bytes()[:cut], folder) // between two files, tar takes a part for the whole
		if found, _ := filepath.Glob(filepath.Join(folder, "*", "documents", "backup-*")); len(found) > 0 {
			t.Errorf("an archive of %d bytes of %d has a backup", cut, whole.Len())
		}
	}
	var part Part
	f.must(m.eachPart(func(_ string, p Part) error { part = p; return nil }))
	f.must(f.dest.Delete(t.Context(), part.Hash))
	var damaged bytes.Buffer
	if err := WriteTar(t.Context(), f.destination(), m, &damaged); err == nil ||
		strings.Contains(damaged.String(), "documents/") {
		t.Errorf("a backup without a part is sent: %v", err)
	}
}
