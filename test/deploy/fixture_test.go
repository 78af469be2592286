// Package deploy tests the shipped configuration of the bus: the real belfry, its
// commands and other programs, each with the permissions that nats.conf grants.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/process"
)

// The environment of a listener's program: its name, with the prefix "ordered "
// for an ordered listener, and the file in which it records the events.
const (
	envName = "BELFRY_TEST_LISTENER"
	envFile = "BELFRY_TEST_FILE"
)

func TestMain(m *testing.M) {
	name := os.Getenv(envName)
	if name == "" {
		process.Main(m)
	}
	f, err := os.OpenFile(os.Getenv(envFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	name, ordered := strings.CutPrefix(name, "ordered ")
	listener.Main(listener.Spec{Name: name, Ordered: ordered,
		Handler: func(_ context.Context, e *listener.Event) error {
			if e.UUID == "poison" {
				return listener.Permanent(errors.New("out of tea"))
			}
			_, err := fmt.Fprintln(f, e.Event, e.UUID)
			return err
		}})
}

// users are the users of nats.conf, by the variable of their password.
var users = map[string]string{
	"FRONT": "front", "WORKER": "worker", "ALL": "belfry", "LISTENER": "listener",
	"OBSERVER": "observer", "CLIENT": "client", "ADMIN": "admin", "SYSTEM": "system", "AUDIT": "audit",
}

func password(user string) string { return "pw-of-" + user }

const configuration = `
data: data
listen: 127.0.0.1:0
stores:
  Authors: {expose: {}}
  Books:
    expose: {events: true}
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
authentication: {providers: {email: {from: b@example.com, mailer: default}}}
binaries: {files: {map: {Books: cover}}}
bus:
  user: belfry
  password: ${BELFRY_ALL_PASSWORD}
`

// fixture is a folder with a configuration, and the environment that holds the
// passwords of nats.conf.
type fixture struct {
	t      *testing.T
	folder string
	config string
	bus    string // URL, where the configuration has none
	belfry *process.Server
}

// newFixture writes a configuration with these lines added to its bus section.
func newFixture(t *testing.T, bus string) *fixture {
	t.Helper()
	w := &fixture{t: t, folder: t.TempDir()}
	t.Setenv("BELFRY_NATS_NAME", "test")
	t.Setenv("BELFRY_NATS_STORE", filepath.Join(w.folder, "nats"))
	for variable, user := range users {
		t.Setenv("BELFRY_"+variable+"_PASSWORD", password(user))
	}
	w.config = w.write("belfry.yaml", configuration+bus)
	return w
}

func (w *fixture) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// shipped returns the path of the shipped nats.conf.
func shipped(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a command of belfry to its end, as a user of the bus, and expects an
// exit code and a part of its output.
func (w *fixture) run(user string, exit int, output string, args ...string) string {
	w.t.Helper()
	secret := w.write("password-of-"+user, password(user)+"\n")
	args = append(args, "--config", w.config, "--user", user, "--password-file", secret)
	if w.bus != "" {
		args = append(args, "--url", w.bus)
	}
	out, errOut, code, err := process.Run(process.Commands(w.t), args...)
	if err != nil {
		w.t.Fatal(err)
	}
	if all := out + errOut; code != exit || !strings.Contains(all, output) || strings.Contains(all, password(user)) {
		w.t.Errorf("%v as %s ended with %d:\n%s", args, user, code, all)
	}
	return out
}

// ready returns the reply of /readyz.
func (w *fixture) ready() (status int, text string) {
	w.t.Helper()
	res, err := http.Get(w.belfry.URL + "/readyz")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func (w *fixture) awaitReady() {
	w.t.Helper()
	process.Eventually(w.t, time.Minute, func() error {
		if status, text := w.ready(); status != http.StatusOK || strings.Contains(text, "degraded") {
			return errors.New(text)
		}
		return nil
	})
}

func (w *fixture) save(store, body string) {
	w.t.Helper()
	res, err := http.Post(w.belfry.URL+store, "application/json", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		w.t.Fatalf("saving %s: %s", body, res.Status)
	}
}

// get returns an object, or the error of the server.
func (w *fixture) get(path string) string {
	w.t.Helper()
	res, err := http.Get(w.belfry.URL + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

// listen starts a listener's program as the user of its name, and returns the
// file in which it records the events.
func (w *fixture) listen(name string, ordered bool) (file string) {
	w.t.Helper()
	file = filepath.Join(w.folder, "received-by-"+name)
	role := name
	if ordered {
		role = "ordered " + name
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envName+"="+role, envFile+"="+file,
		listener.EnvURL+"="+w.bus, listener.EnvUser+"="+name, listener.EnvPassword+"="+password(name))
	cmd.Stderr = os.Stderr
	if err := kit.Start(cmd); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("listener %s: %v", name, err)
		}
	})
	return file
}

// awaitLine waits until a listener has recorded a line.
func (w *fixture) awaitLine(file, line string) {
	w.t.Helper()
	process.Eventually(w.t, time.Minute, func() error {
		data, err := os.ReadFile(file)
		if err == nil && !strings.Contains("\n"+string(data), "\n"+line+"\n") {
			err = fmt.Errorf("%q is not among\n%s", line, data)
		}
		return err
	})
}
