package examples

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/test/backing"
)

const guide = "docs/guides/listeners.md"

const recipes = `
stores:
  Recipes: {expose: {}}
`

// guideBlock returns the first code block of the guide to listeners that begins with a line.
func guideBlock(t *testing.T, fence, begins string) string {
	t.Helper()
	page, err := os.ReadFile("../../" + guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+fence+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if strings.HasPrefix(m[1], begins) {
			return m[1]
		}
	}
	t.Fatalf("%s has no block %q that begins with %q", guide, fence, begins)
	return ""
}

func TestListenerOfTheGuideInNode(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(backing.NPM(t, "listeners/examples/welcome-node"), "node_modules"),
		filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "listener.mjs")
	if err := os.WriteFile(program, []byte(guideBlock(t, "js listener.mjs", "import ")), 0o600); err != nil {
		t.Fatal(err)
	}
	newFixture(t, recipes).printsRecipes("notifier-node", " Soup", "node", program)
}

// The client for Python is installed by neither Go nor npm: where it is missing, the program is only compiled.
func TestListenerOfTheGuideInPython(t *testing.T) {
	program := filepath.Join(t.TempDir(), "listener.py")
	if err := os.WriteFile(program, []byte(guideBlock(t, "python", "import ")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("python3", "-c", "import nats").CombinedOutput(); err != nil {
		t.Logf("not run, only compiled, since python3 has no nats-py: %v: %s", err, out)
		compile := exec.Command("python3", "-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')",
			program)
		if out, err := compile.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	newFixture(t, recipes).printsRecipes("notifier-python", "", "python3", program)
}

// printsRecipes runs a program that prints new recipes, stops it, and runs it again. It must receive the recipe that
// was created meanwhile, and only that one.
func (w *fixture) printsRecipes(listener, title, name string, args ...string) {
	w.t.Helper()
	prints := func(c *child, uuid string) {
		w.eventually(func() error {
			if strings.Contains(c.stderr.String(), "new recipe "+uuid+title) {
				return nil
			}
			return errors.New("the recipe is not printed: " + uuid)
		})
	}
	first := w.start(nil, name, args...)
	w.listens(listener)
	w.save("/recipes", `{"uuid":"soup","title":"Soup"}`)
	prints(first, "soup")
	w.idle(listener)
	first.stop()

	w.save("/recipes", `{"uuid":"stew","title":"Soup"}`)
	second := w.start(nil, name, args...)
	prints(second, "stew")
	w.idle(listener)
	second.stop()
	if said := second.stderr.String(); strings.Contains(said, "soup"+title+"\n") {
		w.t.Errorf("an event that was acknowledged was delivered again:\n%s", said)
	}
}
