package filestore

import (
	"io"
	"path"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"belfry/pkg/errs"
)

// contents returns the files of a folder, with what is in them.
func contents(t *testing.T, disk vfs.FS, folder string) map[string]string {
	t.Helper()
	names, err := disk.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		f, err := disk.Open(path.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
		_ = f.Close()
	}
	return all
}

// A check of a folder, of one whose process was killed as well, changes nothing in it: no log is written into a table.
func TestACheckChangesNothing(t *testing.T) {
	disk, _ := crashed(t)
	before := contents(t, disk, "/data")
	if err := Check("/data", Options{FS: disk}); err != nil {
		t.Fatal(err)
	}
	after := contents(t, disk, "/data")
	if len(after) != len(before) {
		t.Errorf("there were %d files, and are %d", len(before), len(after))
	}
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s has changed", name)
		}
	}
	b, err := Open("/data", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check("/data", Options{FS: disk}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a folder in use: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Check("/data", Options{FS: disk}); err != nil {
		t.Errorf("a folder that was closed: %v", err)
	}
}

// What Open would say of a folder, its check says.
func TestACheckFindsWhatKeepsAFolderFromOpening(t *testing.T) {
	disk, _ := crashed(t)
	if err := Check("/none", Options{FS: disk}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("no folder: %v", err)
	}
	if err := disk.MkdirAll("/empty", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Check("/empty", Options{FS: disk}); errs.KindOf(err) != errs.NotFound ||
		len(contents(t, disk, "/empty")) > 0 {
		t.Errorf("an empty folder: %v, %v", err, contents(t, disk, "/empty"))
	}
	for name := range contents(t, disk, "/data") {
		if len(name) > 8 && name[:8] == "MANIFEST" {
			f, err := disk.Create("/data/"+name, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = f.Write([]byte("not what it was"))
			_ = f.Close()
		}
	}
	if err := Check("/data", Options{FS: disk}); err == nil {
		t.Error("a damaged folder is found well")
	}
}
