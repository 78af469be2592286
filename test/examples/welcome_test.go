package examples

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/backing"
)

const people = `
stores:
  Users:
    expose: {url: /users, restrict: {create: true}}
    schema: user.json
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

const userSchema = `{"type": "object", "properties": {"displayName": {"type": "string", "maxLength": 20}}}`

type user struct{ UUID, Name, DisplayName, Welcomed string }

func TestWelcomeInGo(t *testing.T) {
	w := newFixture(t, people, "user.json", userSchema)
	w.welcomes(nil, "welcome", program(t, "welcome"))
}

func TestWelcomeInNode(t *testing.T) {
	folder := backing.NPM(t, "listeners/examples/welcome-node")
	w, environment := restricted(t, "welcome-node", people, "user.json", userSchema)
	w.welcomes(environment, "welcome-node", "node", filepath.Join(folder, "welcome.js"))
}

// The client for Python is installed by neither Go nor npm: where it is missing,
// the program is only compiled.
func TestWelcomeInPython(t *testing.T) {
	path, err := filepath.Abs(sources + "/welcome-python/welcome.py")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("python3", "-c", "import nats").CombinedOutput(); err != nil {
		t.Logf("not run, only compiled, since python3 has no nats-py: %v: %s", err, out)
		compile := exec.Command("python3", "-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')",
			path)
		if out, err := compile.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	w, environment := restricted(t, "welcome-python", people, "user.json", userSchema)
	w.welcomes(environment, "welcome-python", "python3", path)
}

// welcomes runs a program that welcomes users, kills it while it handles events,
// and redelivers all events to it.
func (w *fixture) welcomes(environment []string, listener, name string, args ...string) {
	t := w.t
	c := w.start(environment, name, args...)
	w.listens(listener)
	const n = 12
	tokens := make([]string, n)
	me := func(i int) user { return object[user](w, "/auth/me", "Authorization", "Bearer "+tokens[i]) }
	welcomed := func(from, to int) func() error {
		return func() error {
			for i := from; i < to; i++ {
				if u := me(i); u.Welcomed == "" || u.DisplayName != u.Name {
					return fmt.Errorf("user %d is %+v", i, u)
				}
			}
			return nil
		}
	}
	for i := range n {
		tokens[i] = w.register(fmt.Sprintf("u%d@example.com", i), fmt.Sprintf("User %d", i))
		if i == n/2 {
			w.eventually(welcomed(0, 1))
			c.kill()
		}
	}
	c = w.start(environment, name, args...)
	w.eventually(welcomed(0, n))
	tooLong := w.register("long@example.com", "A name longer than the schema takes")
	w.idle(listener)
	c.stop()

	// A redelivery does not undo later changes of the users.
	w.request(http.MethodPatch, "/users/"+me(3).UUID, []byte(`{"displayName":"Ada"}`),
		"Content-Type", "application/merge-patch+json", "Authorization", "Bearer "+tokens[3])
	w.reset(listener)
	c = w.start(environment, name, args...)
	w.idle(listener)
	c.stop()
	if u := me(3); u.DisplayName != "Ada" {
		t.Errorf("user 3 is %+v", u)
	}
	type event struct{ UUID, Origin string }
	updates := map[string]int{}
	for _, e := range command[event](w, "events", "get", "--store", "Users", "--event", "Store.Updated") {
		if e.Origin == "bus" {
			updates[e.UUID]++
		}
	}
	for uuid, times := range updates {
		if times != 1 {
			t.Errorf("user %s was updated %d times", uuid, times)
		}
	}
	if len(updates) != n {
		t.Errorf("%d users were updated", len(updates))
	}

	// A dead letter that is retried is handled, and fails again.
	tokens[0] = tooLong
	long := me(0).UUID
	refused := func(retries int) func() error {
		return func() error {
			for _, l := range w.letters(listener) {
				if l.UUID != long || !strings.Contains(l.Reason, "does not match its schema") {
					t.Errorf("unexpected dead letter %+v", l)
				}
				if l.Retries == retries {
					return nil
				}
			}
			return fmt.Errorf("no letter was retried %d times", retries)
		}
	}
	w.check(refused(0)())
	w.start(environment, name, args...)
	w.run("dlq", "retry", "--listener", listener)
	w.eventually(refused(1))
}
