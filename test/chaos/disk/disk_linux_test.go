// Package disk runs the real belfry on disks that get full, or can't be written: it continues once it can, or ends
// with a reason, and nothing that was acknowledged is lost.
package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"belfry/test/kit"
	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

// inside is set in a process that may mount disks which it alone sees.
const inside = "BELFRY_TEST_OWN_DISKS"

// withDisks runs the test in a process that may mount disks, and reports whether this is that process. A user who
// is not root may in a namespace of its own; where the kernel forbids these, the test fails.
func withDisks(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	t.Parallel()
	process.Plain(t) // built once, before many need them
	process.Commands(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=yes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("a process that may mount disks: %v\n%s", err, out)
	}
	return false
}

// fixture is a belfry that is started again when it ends, as by a service manager.
type fixture struct {
	*testing.T
	folder string
	config string
	url    string
	server *process.Server
	ended  []string // what it said when it ended by itself and was started again

	accepted []string // uuids of books that were created
	refused  []string // of others, which may be there nevertheless
}

// small is the size of a disk that gets full, and ample that of one that does not.
const small, ample = "size=16m", "size=256m"

// newFixture mounts a disk on each folder.
func newFixture(t *testing.T, settings string, disks map[string]string) *fixture {
	f := &fixture{T: t, folder: t.TempDir(),
		url: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(kit.FreePort(t)))}
	for folder, size := range disks {
		f.must(os.MkdirAll(f.path(folder), 0o700))
		f.must(syscall.Mount("tmpfs", f.path(folder), "tmpfs", 0, size))
		t.Cleanup(func() { _ = syscall.Unmount(f.path(folder), syscall.MNT_DETACH) })
	}
	f.config = f.path("belfry.yaml")
	f.must(os.WriteFile(f.config, []byte(settings+`
listen: `+strings.TrimPrefix(f.url, "http://")+`
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Books: {expose: {list: true}, search: {fields: [author]}, map: {Authors: {key: author, target: books, limit: 100}}}
`), 0o600))
	return f
}

func (f *fixture) path(names ...string) string {
	return filepath.Join(append([]string{f.folder}, names...)...)
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// grow gives a disk more space.
func (f *fixture) grow(folder string) {
	f.Helper()
	f.must(syscall.Mount("tmpfs", f.path(folder), "tmpfs", syscall.MS_REMOUNT, ample))
}

// fill takes the space that is left on a disk.
func (f *fixture) fill(folder string) {
	f.Helper()
	file, err := os.Create(f.path(folder) + "/filling")
	f.must(err)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		f.Fatal(err)
	}
	f.must(file.Close())
}

// serve starts belfry, which may not be able to serve yet.
func (f *fixture) serve() {
	f.Helper()
	var err error
	f.server, err = process.Launch(process.Plain(f), "--config", f.config)
	f.must(err)
	f.Cleanup(func() { f.server.Kill() })
}

// ask sends a request. While belfry does not run it is started again.
func (f *fixture) ask(method, path, body string) (status int, text string) {
	f.Helper()
	if f.server.Ended() {
		f.ended = append(f.ended, f.server.Log())
		f.serve()
	}
	req, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	f.must(err)
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: kit.Limit}
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(data)
}

// await sends a request until the reply is as wanted.
func (f *fixture) await(method, path, body string, status int, contains string) {
	f.Helper()
	kit.WaitUntil(f, func() error {
		got, text := f.ask(method, path, body)
		if got != status || !strings.Contains(text, contains) {
			return fmt.Errorf("%s %s: %d %s, want %d %q; belfry has ended with %q", method, path, got, text, status,
				contains, f.ended)
		}
		return nil
	})
}

const authors = 20

func (f *fixture) createAuthors() {
	f.Helper()
	for i := range authors {
		f.await("POST", "/authors", fmt.Sprintf(`{"uuid":"a%d"}`, i), http.StatusCreated, "")
	}
}

// write creates books until stop returns true, which it is asked with the last reply.
func (f *fixture) write(stop func(status int, text string) bool) {
	f.Helper()
	title := strings.Repeat("x", 150_000)
	for i := range 2_000 {
		uuid := fmt.Sprint("b", len(f.accepted), "-", i)
		status, text := f.ask("POST", "/books",
			fmt.Sprintf(`{"uuid":%q,"author":"a%d","title":%q}`, uuid, i%authors, title))
		if status == http.StatusCreated {
			f.accepted = append(f.accepted, uuid)
		} else {
			f.refused = append(f.refused, uuid)
		}
		if stop(status, text) {
			return
		}
	}
	f.Fatal("the disk does not get full")
}

// right checks, once there is space, that every accepted book is there, that its event was handled, and that no array
// differs.
func (f *fixture) right() {
	f.Helper()
	f.await("GET", "/readyz", "", http.StatusOK, "")
	f.await("POST", "/books", `{"uuid":"last","author":"a0"}`, http.StatusCreated, "")
	for _, uuid := range append(f.accepted, "last") {
		if status, text := f.ask("GET", "/books/"+uuid, ""); status != http.StatusOK {
			f.Errorf("book %s, which was accepted: %d %s", uuid, status, text)
		}
	}
	kit.WaitUntil(f, func() error {
		has := map[string]bool{}
		for i := range authors {
			_, text := f.ask("GET", fmt.Sprint("/authors/a", i), "")
			var author struct{ Books []struct{ UUID string } }
			if err := json.Unmarshal([]byte(text), &author); err != nil {
				return fmt.Errorf("%w: %s", err, text)
			}
			for _, b := range author.Books {
				has[b.UUID] = true
			}
		}
		for _, uuid := range append(f.accepted, "last") {
			if !has[uuid] {
				return fmt.Errorf("book %s is in no array", uuid)
			}
		}
		return nil
	})
	there := len(f.accepted) + 1
	for _, uuid := range f.refused { // one may be in the log of the disk that got full, after all
		if status, _ := f.ask("GET", "/books/"+uuid, ""); status == http.StatusOK {
			f.Logf("book %s, which was not accepted, is there", uuid)
			there++
		}
	}
	kit.WaitUntil(f, func() error {
		if n := f.found(); n != there {
			return fmt.Errorf("%d books are found by the words in them, %d are there, and %d were accepted", n, there,
				len(f.accepted)+1)
		}
		return nil
	})
	f.must(f.server.Stop())
	out, errOut, exit, err := process.Run(process.Commands(f), "verify", "--config", f.config)
	if err != nil || exit != 0 {
		f.Errorf("verify exits with %d, %v: %s%s", exit, err, out, errOut)
	}
}

// found counts the books that are found by the names of their authors.
func (f *fixture) found() (n int) {
	f.Helper()
	for i := range authors {
		for cursor := ""; ; {
			_, text := f.ask("GET", fmt.Sprintf("/books?q=a%d&fields=uuid&limit=500&cursor=%s", i, cursor), "")
			var page struct {
				Items  []any
				Cursor string
			}
			f.must(json.Unmarshal([]byte(text), &page))
			n += len(page.Items)
			if cursor = page.Cursor; cursor == "" {
				break
			}
		}
	}
	return n
}

// ends waits until belfry has ended by itself, with a reason.
func (f *fixture) ends(reason string) {
	f.Helper()
	if err := f.server.Wait(); err == nil || !strings.Contains(f.server.Log(), reason) {
		f.Errorf("belfry ended with %v, without the reason %q:\n%s", err, reason, f.server.Log())
	}
}

func TestADiskThatObjectsAndEventsFillTogether(t *testing.T) {
	objectsFill(t, "data: disk/data")
}

func TestADiskThatObjectsFill(t *testing.T) {
	objectsFill(t, "data: data\nbackends: {default: {folder: disk/objects}}")
}

// objectsFill fills the disk of the objects: belfry ends, and a start waits until there is space.
func objectsFill(t *testing.T, settings string) {
	t.Helper()
	if !withDisks(t) {
		return
	}
	f := newFixture(t, settings, map[string]string{"disk": small})
	f.serve()
	f.createAuthors()
	f.write(func(status int, _ string) bool { return status != http.StatusCreated })
	f.ends("no space left on device")
	f.fill("disk")
	f.serve()
	f.await("GET", "/readyz", "", http.StatusServiceUnavailable, "waits for space on the disk of backend default")
	f.grow("disk")
	f.right()
}

// Events wait in their records while the disk of the bus is full, also from the start.
func TestADiskThatEventsFill(t *testing.T) {
	if !withDisks(t) {
		return
	}
	f := newFixture(t, "data: disk/data\nbackends: {default: {folder: objects}}", map[string]string{"disk": small})
	f.serve()
	f.createAuthors()
	full := false
	f.write(func(status int, text string) bool {
		if status != http.StatusCreated {
			f.Fatalf("a write while the disk of the bus is full: %d %s", status, text)
		}
		if status, text = f.ask("GET", "/books?q=a1&fields=uuid&limit=1", ""); status != http.StatusOK &&
			status != http.StatusServiceUnavailable {
			f.Errorf("a search while the disk of the index is full: %d %s", status, text)
		}
		status, text = f.ask("GET", "/readyz", "")
		full = full || status == http.StatusOK && strings.Contains(text, "can't be written")
		return full && len(f.accepted)%10 == 0
	})
	f.fill("disk")
	if err := f.server.Stop(); err != nil {
		f.Errorf("%v: %s", err, f.server.Log())
	}
	f.serve()
	f.await("POST", "/books", `{"uuid":"meanwhile","author":"a1"}`, http.StatusCreated, "")
	f.accepted = append(f.accepted, "meanwhile")
	f.await("GET", "/readyz", "", http.StatusOK, "can't be written")
	f.grow("disk")
	f.right()
	if len(f.ended) > 0 {
		f.Errorf("belfry has ended: %q", f.ended)
	}
}

func TestADiskThatCannotBeWritten(t *testing.T) {
	if !withDisks(t) {
		return
	}
	for name, settings := range map[string]string{
		"of data and bus": "data: disk/data",
		"of the objects":  "data: data\nbackends: {default: {folder: disk/objects}}",
		"of the bus":      "data: disk/data\nbackends: {default: {folder: objects}}",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, settings, map[string]string{"disk": ample})
			f.serve()
			f.createAuthors()
			f.must(f.server.Stop())
			f.must(syscall.Mount("tmpfs", f.path("disk"), "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ample))
			f.serve()
			f.ends("read-only file system")
			f.grow("disk")
			f.serve()
			f.right()
		})
	}
}
