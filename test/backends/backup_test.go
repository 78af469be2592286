package backends

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

// installation is a configuration on MongoDB with a bus of its own.
type installation struct {
	*testing.T
	folder string
	text   string
}

func newInstallation(t *testing.T, backups, contents string) *installation {
	t.Helper()
	server := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()})
	return &installation{T: t, folder: t.TempDir(), text: fmt.Sprintf(`
listen: 127.0.0.1:0
bus: {url: %q}
backends: {default: %s}
stores:
  Authors: {expose: {}}
  Books:
    uuid: client
    expose: {}
    indexes: [author]
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
binaries:
  files: {%s, map: {Authors: [photos]}}
backup: {%s}
`, server.ClientURL(), mongo(), contents, backups)}
}

// config writes the configuration of one process.
func (i *installation) config(process string) string {
	return write(i.T, i.folder, process+".yaml", i.text+"data: ./"+process+"\n")
}

// writers create books at several processes, each no faster than its copies are made, until stop is called, and return
// those that were acknowledged.
func writers(t *testing.T, fronts ...*process.Server) (acknowledged func() []string, stop func()) {
	return kit.Writing(len(fronts), func(front, n int) (string, bool) {
		uuid := fmt.Sprintf("b%d-%d", front, n)
		r, err := request(fronts[front].URL, "POST", "/books",
			fmt.Sprintf(`{"uuid":%q,"author":"a%d","title":"T"}`, uuid, n%3), "Prefer", "wait=10")
		if err != nil || r.status != http.StatusCreated {
			t.Errorf("%s: %v %d %s", uuid, err, r.status, r.body)
			return "", false
		}
		return uuid, true
	})
}

// export returns the objects of a store.
func export(t *testing.T, config, store string) string {
	t.Helper()
	out, _ := belfry(t, 0, "export", store, "--config", config)
	return out
}

// killed starts a command and kills it when a condition holds; the command may end before.
func killed(t *testing.T, when func() bool, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), process.Commands(t), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	kit.WaitFor(t, "the moment of the kill", func() bool {
		select {
		case <-ended:
			return true
		default:
			return when()
		}
	})
	_ = cmd.Process.Kill()
	<-ended
}

// Two processes share stores on MongoDB, and make one backup of their schedule. Backups are killed and made under load;
// restores are killed and made; and the result equals what was backed up.
func TestABackupOnMongoDBUnderLoadIsRestored(t *testing.T) {
	t.Parallel()
	destination := fmt.Sprintf("s3: {%s, prefix: %s/}", bucket(""), place())
	from := newInstallation(t, destination+", schedule: 0 0 1 1 *", contents())
	first, second := from.config("one"), from.config("two")
	one := process.Serve(t, first)
	two := process.Serve(t, second)
	scheduled := func(s *process.Server) bool { return strings.Contains(s.Log(), "a backup was made") }
	kit.WaitFor(t, "the backup of the schedule", func() bool { return scheduled(one) || scheduled(two) })
	if scheduled(one) && scheduled(two) {
		t.Error("both processes have made a backup")
	}
	for i := range 3 {
		must(t, one, 201, "POST", "/authors", fmt.Sprintf(`{"uuid":"a%d"}`, i))
	}
	must(t, one, 201, "PUT", "/binary/upload/Authors/a0/photos/add", `"a picture"`)

	acknowledged, stopWriting := writers(t, one, two)
	kit.WaitFor(t, "writes", func() bool { return len(acknowledged()) > 50 })
	third := from.config("three")
	folder := t.TempDir()
	killed(t, func() bool { found, _ := filepath.Glob(filepath.Join(folder, "*", "*", "*")); return len(found) > 0 },
		"backup", "--config", third, "--place", folder)
	before := acknowledged()
	belfryWithRace(t, 0, "backup", "--config", third, "--place", folder)
	stopWriting()
	belfry(t, 0, "backup", "verify", "--config", third, "--place", folder)

	to := newInstallation(t, destination, contents())
	restored := to.config("one")
	killed(t, func() bool { _, err := os.Stat(filepath.Join(to.folder, "one", "restore.json")); return err == nil },
		"restore", "--config", restored, "--place", folder)
	if _, err := os.Stat(filepath.Join(to.folder, "one", "restore.json")); err == nil {
		if _, errOut := belfry(t, 1, "serve", "--config", restored); !strings.Contains(errOut,
			"run `belfry restore` again") {
			t.Errorf("a restore was killed, and serve reports %s", errOut)
		}
		belfry(t, 0, "restore", "--config", restored, "--place", folder)
	}
	verified(t, restored)
	books := export(t, restored, "Books")
	for _, uuid := range before {
		if !strings.Contains(books, fmt.Sprintf("%q", uuid)) {
			t.Errorf("%s was acknowledged before the backup, which lacks it", uuid)
		}
	}
	if _, errOut := belfry(t, 2, "restore", "--config", restored, "--place", folder); !strings.Contains(errOut,
		"is not empty") {
		t.Errorf("a restore into data reports %s", errOut)
	}

	idle(t, one)
	belfry(t, 0, "backup", "--config", first) // by the process that serves
	out, _ := belfry(t, 0, "backup", "list", "--json", "--config", first)
	if n := strings.Count(out, `"id"`); n != 2 {
		t.Errorf("there are %d backups, want 2: %s", n, out)
	}
	stop(t, one)
	stop(t, two)
	equal := newInstallation(t, destination, contents())
	config := equal.config("one")
	belfryWithRace(t, 0, "restore", "--config", config)
	for _, store := range []string{"Authors", "Books"} {
		if got, want := export(t, config, store), export(t, first, store); got != want {
			t.Errorf("%s: restored %s\nwant %s", store, got, want)
		}
	}
	s := process.ServePlain(t, config)
	if r := must(t, s, 200, "GET", "/binary/Authors/a0/photos/0", ""); string(r.body) != `"a picture"` {
		t.Errorf("the file is %s", r.body)
	}
	must(t, s, 201, "POST", "/books", `{"uuid":"new","author":"a0","title":"T"}`)
	eventually(t, s, "/authors/a0", `books.#(uuid=="new").title`, "T")
	stop(t, s)
	verified(t, config)
}
