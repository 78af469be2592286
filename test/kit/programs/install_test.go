package programs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestAProgramIsBuiltOncePerContentOfItsSources(t *testing.T) {
	cache, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "src", "main.go"), "one")
	builds := 0
	j := job{name: "p", from: []string{"src"}, build: func(_ context.Context, root, target string) error {
		builds++
		return os.CopyFS(target, os.DirFS(filepath.Join(root, "src")))
	}}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := installInto(cache, root, j); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if builds != 1 {
		t.Errorf("%d builds", builds)
	}
	write(t, filepath.Join(root, "src", "main_test.go"), "tests are no part of it")
	first, err := installInto(cache, root, j)
	if err != nil || builds != 1 {
		t.Errorf("%d builds, %v", builds, err)
	}
	write(t, filepath.Join(root, "src", "main.go"), "two")
	second, err := installInto(cache, root, j)
	if err != nil || builds != 2 || first == second {
		t.Errorf("%d builds, %v", builds, err)
	}
}

func TestAProgramThatMustBeThereIsNotBuilt(t *testing.T) {
	j := job{name: "p", prepared: true,
		build: func(context.Context, string, string) error { return errors.New("it is built") }}
	if _, err := installInto(t.TempDir(), t.TempDir(), j); err == nil ||
		!strings.Contains(err.Error(), "test/suite/rest") {
		t.Error(err)
	}
}

func TestABuildThatFailsLeavesNothing(t *testing.T) {
	cache, root := t.TempDir(), t.TempDir()
	fails := errors.New("no compiler")
	j := job{name: "p", build: func(_ context.Context, _, target string) error {
		write(t, filepath.Join(target, "half"), "")
		return fails
	}}
	if _, err := installInto(cache, root, j); !errors.Is(err, fails) {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "p-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestOnlyProgramsThatNothingUsesAreRemoved(t *testing.T) {
	cache := t.TempDir()
	for name, age := range map[string]time.Duration{"p-old": 2 * unused, "p-new": 0, "q-old": 2 * unused} {
		path := filepath.Join(cache, name)
		write(t, filepath.Join(path, "file"), "")
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeOutdated(cache, "p"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"p-old": false, "p-new": true, "q-old": true} {
		if _, err := os.Stat(filepath.Join(cache, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
