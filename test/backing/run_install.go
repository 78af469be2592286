package backing

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gofrs/flock"
)

// servers is where programs are pinned that tests alone use.
const servers = "test/servers/"

// buildModule builds the program of the Go module test/servers/<name>, unless
// the cache has it, and returns its path.
func buildModule(t testing.TB, name string) string {
	t.Helper()
	folder := install(t, servers+name, runtime.Version(), func(source, target string) error {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(target, name), ".")
		build.Dir = source
		// No C compiler is asked for, and no setting of the tests' own build.
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
		return run(build)
	})
	return filepath.Join(folder, name)
}

// buildTool builds what the Go module in source pins as a tool.
func buildTool(source, target string) error {
	build := exec.Command("go", "build", "-trimpath", "-o", target+string(filepath.Separator), "tool")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	return run(build)
}

// NPM installs what the lock file in a folder of the project says, unless the
// cache has it, and returns the folder that holds a copy of that one and its
// node_modules. The path is from the project's root. No script of a package is
// run.
func NPM(t testing.TB, path string) string {
	t.Helper()
	return install(t, path, "npm", func(source, target string) error {
		if err := os.CopyFS(target, os.DirFS(source)); err != nil {
			return err
		}
		ci := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		ci.Dir = target
		return run(ci)
	})
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// install returns the folder of the cache that holds what make makes of a
// folder of the project. It is made once for everything that pins it: the files
// of that folder, the tool and the machine.
func install(t testing.TB, path, tool string, make func(source, target string) error) string {
	t.Helper()
	name := filepath.Base(path)
	source, err := sourceOf(path)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := hashOf(source, tool, runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("the cache for %s: %v", name, err)
	}
	cache := filepath.Join(user, "belfry-test")
	target := filepath.Join(cache, name+"-"+sum)
	if err := installInto(cache, source, target, make); err != nil {
		t.Fatalf("%s can't be had: %v", name, err)
	}
	return target
}

// installInto makes target unless it is there. Another process or test that
// wants it meanwhile waits; one that is killed leaves no half of it.
func installInto(cache, source, target string, make func(source, target string) error) (err error) {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	lock := flock.New(target + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	made := target + ".part"
	if err := os.RemoveAll(made); err != nil {
		return err
	}
	if err := os.Mkdir(made, 0o700); err != nil {
		return err
	}
	if err := make(source, made); err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return os.Rename(made, target)
}

// sourceOf finds a folder of the project, above the one in which the test runs.
func sourceOf(path string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		source := filepath.Join(folder, filepath.FromSlash(path))
		if _, err := os.Stat(source); err == nil {
			return source, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("there is no %s above the folder of the test", path)
		}
		folder = parent
	}
}

// hashOf is a short name for the files of a folder and some words.
func hashOf(folder string, words ...string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", words)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "node_modules":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q\n", strings.TrimPrefix(path, folder))
		_, err = io.Copy(h, file)
		return errors.Join(err, file.Close())
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}
