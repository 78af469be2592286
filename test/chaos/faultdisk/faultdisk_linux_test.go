package faultdisk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Where no disk can be mounted (without /dev/fuse, or for a user who is not root) there is nothing to test.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "faultdisk")
	if err == nil {
		var unmount func() error
		if unmount, err = New().Mount(folder); err == nil {
			err = unmount()
		}
		err = errors.Join(err, os.Remove(folder))
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		fmt.Println("faultdisk is not tested:", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mount returns a disk and the folder in which it is.
func mount(t *testing.T) (*Disk, string) {
	t.Helper()
	d, folder := New(), t.TempDir()
	unmount, err := d.Mount(folder)
	if err != nil {
		t.Fatalf("the disk can't be mounted here, which test/chaos needs for its faults of disks: %v", err)
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Error(err)
		}
	})
	return d, folder
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func syncFolder(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	must(t, f.Sync(), f.Close())
}

func writeSynced(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err, f.Sync(), f.Close())
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "no file"
	}
	must(t, err)
	return string(data)
}

func TestSyncedContentSurvivesAPowerCutAndOtherContentDoesNot(t *testing.T) {
	d, folder := mount(t)
	synced, appended, written := filepath.Join(folder, "synced"), filepath.Join(folder, "appended"),
		filepath.Join(folder, "written")
	writeSynced(t, synced, "kept")
	writeSynced(t, appended, "kept")
	f, err := os.OpenFile(appended, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString(" and lost")
	must(t, err)
	_, err = f.WriteAt([]byte("K"), 0)
	if err == nil {
		t.Error("a file opened for appending was written elsewhere")
	}
	must(t, f.Close(), os.WriteFile(written, []byte("lost"), 0o600))
	if got := contentOf(t, appended); got != "kept and lost" {
		t.Errorf("before the cut: %q", got)
	}
	if pages, names := d.Unsynced(); pages != 2 || names != 1 {
		t.Errorf("%d pages and %d names are not synced", pages, names)
	}
	d.Cut(nil)
	for path, want := range map[string]string{synced: "kept", appended: "kept", written: "no file"} {
		if got := contentOf(t, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// A page that is overwritten and a file that is shortened are taken back too.
func TestAPowerCutTakesBackOverwrittenContent(t *testing.T) {
	d, folder := mount(t)
	path, short := filepath.Join(folder, "file"), filepath.Join(folder, "short")
	old := string(bytes.Repeat([]byte("old."), 5000))
	writeSynced(t, path, old)
	writeSynced(t, short, old)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("new"), 9000)
	must(t, err, f.Close(), os.Truncate(short, 5))
	if contentOf(t, path) == old || contentOf(t, short) != "old.o" {
		t.Error("before the cut the files are old")
	}
	d.Cut(nil)
	if contentOf(t, path) != old || contentOf(t, short) != old {
		t.Errorf("after the cut: %d and %d bytes", len(contentOf(t, path)), len(contentOf(t, short)))
	}
}

func TestNamesBecomeDurableInTheirOrder(t *testing.T) {
	for name, c := range map[string]struct {
		sync func(t *testing.T, folder string)
		want [3]string // a (created), b (renamed over), c (removed)
	}{
		"nothing synced": {func(*testing.T, string) {}, [3]string{"no file", "old", "old"}},
		"the folder":     {syncFolder, [3]string{"", "new", "no file"}},
		"the file that was renamed": {func(t *testing.T, folder string) { syncFolder(t, filepath.Join(folder, "b")) },
			[3]string{"", "new", "old"}},
		"the file that was created": {func(t *testing.T, folder string) { syncFolder(t, filepath.Join(folder, "a")) },
			[3]string{"created", "old", "old"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, folder := mount(t)
			in := func(name string) string { return filepath.Join(folder, name) }
			writeSynced(t, in("b"), "old")
			writeSynced(t, in("c"), "old")
			writeSynced(t, in("n"), "new")
			must(t, os.WriteFile(in("a"), []byte("created"), 0o600))
			must(t, os.Rename(in("n"), in("b")))
			must(t, os.Remove(in("c")))
			c.sync(t, folder)
			d.Cut(nil)
			if got := [3]string{contentOf(t, in("a")), contentOf(t, in("b")), contentOf(t, in("c"))}; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// As on ext4, a file that is replaced is not empty after a power cut, though nobody synced the new one; a new
// file is.
func TestContentThatReplacesOtherContentIsWrittenFirst(t *testing.T) {
	d, folder := mount(t)
	in := func(name string) string { return filepath.Join(folder, name) }
	writeSynced(t, in("anew"), "old")
	writeSynced(t, in("renamed"), "old")
	must(t, os.WriteFile(in("anew"), []byte("new"), 0o600), os.WriteFile(in("temp"), []byte("new"), 0o600),
		os.Rename(in("temp"), in("renamed")), os.WriteFile(in("first"), []byte("new"), 0o600))
	syncFolder(t, folder)
	d.Cut(nil)
	for name, want := range map[string]string{"anew": "new", "renamed": "new", "first": ""} {
		if got := contentOf(t, in(name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAFileThatIsOpenedForSyncedWritingIsDurableAtOnce(t *testing.T) {
	d, folder := mount(t)
	path := filepath.Join(folder, "file")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	must(t, err)
	_, err = f.WriteString("kept")
	must(t, err)
	d.FailSyncs()
	if _, err := f.WriteString("lost"); !errors.Is(err, syscall.EIO) {
		t.Errorf("a synced write to a failing disk: %v", err)
	}
	d.Heal()
	must(t, f.Close())
	d.Cut(nil)
	if got := contentOf(t, path); got != "kept" {
		t.Errorf("after the cut it is %q", got)
	}
}

// What was appended and survives by chance is a beginning of it that ends with a write or a page, and what was
// synced is all there.
func TestAPowerCutMayKeepAPart(t *testing.T) {
	sizes := map[int]bool{}
	for seed := range uint64(40) {
		d, folder := mount(t)
		path := filepath.Join(folder, "file")
		writeSynced(t, path, "kept.")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		all := append([]byte("kept."), bytes.Repeat([]byte("0123456789"), 2000)...)
		_, err = f.Write(all[5:30])
		must(t, err)
		_, err = f.Write(all[30:])
		must(t, err, f.Close())
		d.Cut(rand.New(rand.NewPCG(seed, 0)))
		got := contentOf(t, path)
		if len(got) < 5 || !bytes.HasPrefix(all, []byte(got)) {
			t.Fatalf("seed %d: %d bytes that are no beginning", seed, len(got))
		}
		sizes[len(got)] = true
	}
	if len(sizes) != 7 || !sizes[5] || !sizes[30] || !sizes[4096] || !sizes[16384] || !sizes[20005] {
		t.Errorf("the file had the sizes %v", sizes)
	}
}

func TestAFailedSyncLosesWhatItShouldHaveSynced(t *testing.T) {
	d, folder := mount(t)
	path := filepath.Join(folder, "file")
	writeSynced(t, path, "kept")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteString("lost")
	must(t, err)
	d.FailSyncs()
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the sync of a failing disk: %v", err)
	}
	d.Heal()
	must(t, f.Sync(), f.Close())
	if got := contentOf(t, path); got != "lost" {
		t.Errorf("it reads %q", got)
	}
	d.Cut(nil)
	if got := contentOf(t, path); got != "kept" {
		t.Errorf("after the cut it is %q", got)
	}
}

func TestFaultsEndWhenTheDiskIsHealed(t *testing.T) {
	d, folder := mount(t)
	path := filepath.Join(folder, "file")
	writeSynced(t, path, "old")
	attempts := 0
	attempt := func() error {
		attempts++
		return os.WriteFile(fmt.Sprint(path, attempts), bytes.Repeat([]byte("new"), 20_000), 0o600)
	}
	for name, c := range map[string]struct {
		begin func()
		want  error
	}{
		"full":      {func() { d.Fill(10_000) }, syscall.ENOSPC},
		"read-only": {d.ReadOnly, syscall.EROFS},
		"writes":    {d.FailWrites, syscall.EIO},
		"unplugged": {d.Fail, syscall.EIO},
	} {
		c.begin()
		if err := attempt(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if errors.Is(c.want, syscall.ENOSPC) {
			must(t, os.Truncate(path, 0)) // also on a full disk
		}
		d.Heal()
		must(t, attempt())
	}
	d.DelaySyncs(time.Hour)
	synced := make(chan error)
	go func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		synced <- err
	}()
	select {
	case err := <-synced:
		t.Errorf("a slow sync has ended: %v", err)
	default:
	}
	d.Heal()
	must(t, <-synced)
}

func TestFoldersLinksAndLocksWorkAsOnADisk(t *testing.T) {
	_, folder := mount(t)
	in := func(name string) string { return filepath.Join(folder, name) }
	must(t, os.MkdirAll(in("x/y/z"), 0o700))
	writeSynced(t, in("x/y/file"), "text")
	must(t, os.Link(in("x/y/file"), in("x/link")), os.Symlink("link", in("x/soft")))
	if err := os.Remove(in("x/y")); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("removing a folder that is not empty: %v", err)
	}
	must(t, os.Remove(in("x/y/file")), os.Rename(in("x/y"), in("moved")))
	if got := contentOf(t, in("x/link")) + contentOf(t, in("x/soft")); got != "texttext" {
		t.Errorf("through links: %q", got)
	}
	for i := range 300 { // more than one reply of the disk
		must(t, os.WriteFile(in("moved/"+string(rune('a'+i%26))+string(rune('a'+i/26))), nil, 0o600))
	}
	entries, err := os.ReadDir(in("moved"))
	if err != nil || len(entries) != 301 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	f, err := os.OpenFile(in("x/link"), os.O_RDWR, 0)
	must(t, err)
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	must(t, syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock), os.Remove(in("x/link")))
	_, err = f.WriteAt([]byte("open"), 0) // its name is gone
	must(t, err)
	buffer := make([]byte, 4)
	_, err = f.ReadAt(buffer, 0)
	must(t, err, f.Close(), os.RemoveAll(in("x")))
	if string(buffer) != "open" {
		t.Errorf("a file without a name holds %q", buffer)
	}
}
