package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"belfry/test/kit"
)

// job is one build.
type job struct {
	name    string
	from    []string // files and folders of the project, from its root
	words   []string // what it depends on besides
	build   func(ctx context.Context, root, target string) error
	changes bool // with the project: earlier builds are removed

	prepared bool // it must be in the cache
}

// Prepared is the variable of the environment which says that all programs have been built. One that is missing is not
// built then, while other tests run and wait.
const Prepared = "BELFRY_TEST_PREPARED"

var (
	mu    sync.Mutex
	built = map[string]string{} // folder by name, in this process
)

// install returns the folder of the cache that holds what a job builds.
func install(j job) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	if folder := built[j.name]; folder != "" {
		return folder, os.Chtimes(folder, time.Time{}, time.Now())
	}
	root, err := projectRoot()
	if err != nil {
		return "", err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the cache for %s: %w", j.name, err)
	}
	j.prepared = os.Getenv(Prepared) != ""
	folder, err := installInto(filepath.Join(user, "belfry-test"), root, j)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", j.name, err)
	}
	built[j.name] = folder
	return folder, nil
}

// installInto builds unless the cache has it. Another process that wants the same waits; one that is
// killed leaves nothing half built.
func installInto(cache, root string, j job) (folder string, err error) {
	sum, err := hashOf(root, j.from, append(toolchain(), j.words...))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*kit.Limit) // of another's build, and this one
	defer cancel()
	lock := flock.New(filepath.Join(cache, j.name+".lock"))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", fmt.Errorf("waiting for another build: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	folder = filepath.Join(cache, j.name+"-"+sum)
	if _, err := os.Stat(folder); err == nil {
		return folder, os.Chtimes(folder, time.Time{}, time.Now())
	}
	if j.prepared {
		return "", errors.New(
			"make test does not build it: either its tests belong in test/suite/rest, or it belongs " +
				"to the programs of make test in test/kit/programs; or its sources have changed since make test " +
				"began: run it again")
	}
	if j.changes {
		if err := removeOutdated(cache, j.name); err != nil {
			return "", err
		}
	}
	part := folder + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	if err := os.Mkdir(part, 0o700); err != nil {
		return "", err
	}
	if err := j.build(ctx, root, part); err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	return folder, os.Rename(part, folder)
}

// unused is how long nothing has used a program that no running test can need.
const unused = time.Hour

func removeOutdated(cache, name string) error {
	folders, err := filepath.Glob(filepath.Join(cache, name+"-*"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err == nil && time.Since(info.ModTime()) > unused {
			err = os.RemoveAll(folder)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// projectRoot finds the folder of the project's go.mod, above the one in which the test runs.
func projectRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "test", "servers")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("the working folder is outside of the project")
		}
		folder = parent
	}
}

// hashOf is a short name for the content of files and folders, tests aside, and some words. It reads
// every file, by which go test knows when a cached result of a test is out of date: go test sees what
// a test reads, but not what the programs are built from that it starts.
func hashOf(root string, from, words []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", words)
	for _, source := range from {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(source)),
			func(path string, entry fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return err
				case entry.IsDir() && entry.Name() == "node_modules":
					return fs.SkipDir
				case !entry.Type().IsRegular() || strings.HasSuffix(path, "_test.go"):
					return nil
				}
				data, err := os.ReadFile(path)
				fmt.Fprintf(h, "%q %d\n", strings.TrimPrefix(path, root), len(data))
				_, writing := h.Write(data)
				return errors.Join(err, writing)
			})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
