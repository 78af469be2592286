package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"belfry/test/kit"
	"belfry/test/process"
)

// maxProgram is the greatest size of belfry in bytes.
const maxProgram = 88_000_000

func TestTheProgramIsStaticAndNotTooLarge(t *testing.T) {
	program := process.Commands(t)
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() > maxProgram {
		t.Errorf("belfry has %d bytes, more than %d: see what a new module brings (go tool nm -size -sort size)",
			info.Size(), maxProgram)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		t.Errorf("it needs %v, and an image from scratch has no libraries", libraries)
	}
	if f.Section(".interp") != nil {
		t.Error("it needs a dynamic linker, and an image from scratch has none")
	}
}

func TestTheImageHasTheProgramOfMakeBuild(t *testing.T) {
	build, _ := parse(t, read(t, "Dockerfile"))
	if !slices.Contains(build, "RUN make build") {
		t.Errorf("the image is built by %v", build)
	}
}

// The image has the program, a configuration, licenses and the certificates of authorities, and a folder for data. In a
// root with these alone, as a user who owns nothing else, belfry serves, the health check succeeds, and data is kept.
func TestTheImageServesInARootOfItsOwn(t *testing.T) {
	_, i := parse(t, read(t, "Dockerfile"))
	folder := assemble(t, i)
	port := strconv.Itoa(kit.FreePort(t))
	run := func(ctx context.Context, args []string, out *kit.Tail) *exec.Cmd {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
		// A port of its own: the network is that of the machine.
		cmd.Env = append(slices.Clone(i.env), "BELFRY_LISTEN=:"+port)
		cmd.SysProcAttr = confined(t, folder, i.user)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = time.Minute
		return cmd
	}
	health := func() error {
		var out kit.Tail
		if err := run(t.Context(), i.health, &out).Run(); err != nil {
			return fmt.Errorf("%w: %s", err, out.String())
		}
		return nil
	}
	if err := health(); err == nil {
		t.Fatal("the health check succeeds before belfry is started")
	}
	ask := func(method, path, body string, status int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+port+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s %s: %s, want %d", method, path, resp.Status, status)
		}
	}
	for round := range 2 {
		ctx, stop := context.WithCancel(t.Context())
		var out kit.Tail
		served := run(ctx, append(slices.Clone(i.entrypoint), i.command...), &out)
		if err := kit.Start(served); err != nil {
			t.Fatal(err)
		}
		kit.WaitUntil(t, func() error {
			if err := health(); err != nil {
				return fmt.Errorf("%w\n%s", err, out.String())
			}
			return nil
		})
		if round == 0 {
			ask("POST", "/notes", `{"uuid":"kept","text":"by the first container"}`, http.StatusCreated)
		}
		ask("GET", "/notes/kept", "", http.StatusOK)
		ask("GET", "/console", "", http.StatusOK)
		stop()
		if err := served.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("it did not stop by itself: %v\n%s", err, out.String())
		}
	}
	outside(t, folder)
}

// assemble makes the root of the image. Its configuration gets a store: the one of the image has none.
func assemble(t *testing.T, i image) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for above := filepath.Dir(folder); above != os.TempDir() && above != "/"; above = filepath.Dir(above) {
		if err := os.Chmod(above, 0o755); err != nil { // Go makes them for the tests' user alone
			t.Fatal(err)
		}
	}
	for _, c := range i.files {
		to := filepath.Join(folder, c.to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch source := strings.TrimPrefix(c.from, "/src/"); {
		case c.from == "/empty":
			err = os.Mkdir(to, 0o755)
		case source == "bin/belfry":
			err = link(process.Commands(t), to)
		case source == "deploy/belfry.yaml":
			err = os.WriteFile(to, []byte(read(t, source)+"stores: {Notes: {expose: {}}}\n"), 0o644)
		case source != c.from:
			err = os.WriteFile(to, []byte(read(t, source)), 0o644)
		case strings.HasPrefix(c.from, "/etc/ssl/"):
			err = os.WriteFile(to, nil, 0o644) // of the build's image; nothing here connects to others
		default:
			t.Fatalf("%s is copied from where this test knows nothing", c.from)
		}
		if err == nil && c.owner != "" && os.Getuid() == 0 {
			id := ids(t, c.owner)
			err = os.Chown(to, id[0], id[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// link makes the program readable for the image's user, who can't read the tests' cache.
func link(program, to string) error {
	data, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

func ids(t *testing.T, text string) (all [2]int) {
	t.Helper()
	user, group, _ := strings.Cut(text, ":")
	for i, id := range []string{user, group} {
		n, err := strconv.Atoi(id)
		if err != nil || n == 0 {
			t.Fatalf("%s: expected numbers, none of which is root's: an image from scratch has no names, and "+
				"Kubernetes checks runAsNonRoot by numbers", text)
		}
		all[i] = n
	}
	return all
}

// confined is a process that sees the folder alone, as the user of the image. Who is not root may do that in a
// namespace of users of their own, in which they are the user of the image.
func confined(t *testing.T, folder, user string) *syscall.SysProcAttr {
	t.Helper()
	id := ids(t, user)
	if os.Getuid() == 0 {
		return &syscall.SysProcAttr{
			Chroot:     folder,
			Credential: &syscall.Credential{Uid: uint32(id[0]), Gid: uint32(id[1])},
		}
	}
	return &syscall.SysProcAttr{
		Chroot:      folder,
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: id[0], HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: id[1], HostID: os.Getgid(), Size: 1}},
	}
}

// outside checks that belfry wrote into the data folder only, which is a volume.
func outside(t *testing.T, folder string) {
	t.Helper()
	kept := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch name := strings.TrimPrefix(path, folder); {
		case strings.HasPrefix(name, "/data/"):
			kept++
		case !slices.ContainsFunc([]string{"/belfry", "/etc/", "/licenses/"},
			func(known string) bool { return strings.HasPrefix(name, known) }):
			t.Errorf("belfry wrote %s, which a read-only root forbids", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept == 0 {
		t.Error("there is no data")
	}
}

func TestTheImageHasWhatALicenseDemands(t *testing.T) {
	_, i := parse(t, read(t, "Dockerfile"))
	for _, name := range []string{"/licenses/LICENSE", "/licenses/NOTICE", "/licenses/THIRD_PARTY_LICENSES",
		"/etc/ssl/certs/ca-certificates.crt"} {
		if !slices.ContainsFunc(i.files, func(c copied) bool { return c.to == name }) {
			t.Errorf("the image has no %s", name)
		}
	}
	if !slices.Equal(i.volumes, []string{"/data"}) || !slices.Equal(i.ports, []string{"8080"}) {
		t.Errorf("volumes %v, ports %v", i.volumes, i.ports)
	}
	for _, id := range ids(t, i.user) {
		if id < 10000 {
			t.Errorf("user %s: an id above 10000 is unlikely to be that of somebody on the machine", i.user)
		}
	}
	if ignored := read(t, ".dockerignore"); strings.Contains(ignored, "\n.git") ||
		strings.Contains(ignored, "\n/.git") {
		t.Error(".git is left out, so the image has no version")
	}
}
