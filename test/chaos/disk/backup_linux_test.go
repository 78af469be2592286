package disk

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/process"
)

// belfry runs a command with the configuration, and returns what it prints.
func (f *fixture) belfry(args ...string) (exit int, out string) {
	f.Helper()
	text, errOut, exit, err := process.Run(process.Commands(f), append(args, "--config", f.config)...)
	f.must(err)
	return exit, text + errOut
}

// leave fills a disk but for so many bytes.
func (f *fixture) leave(folder string, free int64) {
	f.Helper()
	if err := os.Remove(f.path(folder, "filling")); err != nil && !os.IsNotExist(err) {
		f.Fatal(err)
	}
	f.fill(folder)
	info, err := os.Stat(f.path(folder, "filling"))
	f.must(err)
	f.must(os.Truncate(f.path(folder, "filling"), max(0, info.Size()-free)))
}

// store makes authors and some megabytes of books, and ends belfry.
func (f *fixture) store() {
	f.Helper()
	f.createAuthors()
	f.write(func(int, string) bool { return len(f.accepted) == 20 })
}

// Wherever the disk gets full, a restore says so, with the place and what to do, and nothing uses what it has written.
// Once there is space, it is made again.
func TestARestoreOntoADiskThatGetsFull(t *testing.T) {
	if !withDisks(t) {
		return
	}
	f := newFixture(t, "data: data", map[string]string{"disk": small})
	f.serve()
	f.store()
	f.must(f.server.Stop())
	place := f.path("backups")
	if exit, out := f.belfry("backup", "--place", place); exit != 0 {
		t.Fatal(out)
	}
	data := f.path("disk", "data")
	restore := []string{"restore", "--place", place, "--data", data}
	partly := 0
	for _, free := range []int64{0, 256 << 10, 1 << 20, 2 << 20, 15 << 20} {
		f.leave("disk", free)
		exit, out := f.belfry(restore...)
		if exit == 0 {
			break
		}
		if exit != 1 || !strings.Contains(out, "no space left on device") || !strings.Contains(out, f.path("disk")) {
			t.Fatalf("with %d bytes free: exit %d: %s", free, exit, out)
		}
		if _, err := os.Stat(filepath.Join(data, "restore.json")); err != nil {
			continue
		}
		partly++
		if !strings.Contains(out, "run `belfry restore` again") {
			t.Errorf("with %d bytes free the error does not say what to do: %s", free, out)
		}
		if exit, out := f.belfry("export", "Books", "--data", data); exit != 1 ||
			!strings.Contains(out, "run `belfry restore` again") {
			t.Errorf("with %d bytes free a part is used: exit %d: %s", free, exit, out)
		}
	}
	if partly < 2 {
		t.Errorf("the disk got full in the middle %d times", partly)
	}
	f.must(os.Rename(f.config, f.config+".before"))
	text, err := os.ReadFile(f.config + ".before")
	f.must(err)
	f.must(os.WriteFile(f.config, []byte(strings.Replace(string(text), "data: data", "data: disk/data", 1)), 0o600))
	f.grow("disk")
	f.serve()
	f.right()
}

// A backup onto a full disk fails with the place, belfry continues to serve, and the next one is whole.
func TestABackupOntoADiskThatGetsFull(t *testing.T) {
	if !withDisks(t) {
		return
	}
	f := newFixture(t, "data: data", map[string]string{"disk": small})
	f.serve()
	f.store()
	place := f.path("disk", "backups")
	for _, free := range []int64{0, 1 << 20} {
		f.leave("disk", free)
		exit, out := f.belfry("backup", "--place", place)
		if exit != 1 || !strings.Contains(out, "the destination of backups, "+place) || !strings.Contains(out, "full") {
			t.Errorf("with %d bytes free: exit %d: %s", free, exit, out)
		}
		if status, text := f.ask("POST", "/books",
			fmt.Sprintf(`{"uuid":"during%d","author":"a1"}`, free)); status != http.StatusCreated {
			t.Errorf("%d %s", status, text)
		}
	}
	f.grow("disk")
	for _, args := range [][]string{{"backup"}, {"backup", "verify"}} {
		if exit, out := f.belfry(append(args, "--place", place)...); exit != 0 {
			t.Errorf("%q: exit %d: %s", args, exit, out)
		}
	}
	if left, err := os.ReadDir(filepath.Join(place, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("%d stages are left, %v", len(left), err)
	}
	if len(f.ended) > 0 {
		t.Errorf("belfry has ended: %q", f.ended)
	}
	f.must(f.server.Stop())
}
