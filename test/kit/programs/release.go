package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Release builds the belfry of a commit of the project's history, as users run it, and returns its path. It is an error
// if the clone has no history, or not that commit.
func Release(commit string) (string, error) {
	folder, err := install(job{name: "release-belfry", words: []string{commit}, changes: true,
		build: func(ctx context.Context, root, target string) error {
			source, err := os.MkdirTemp("", "belfry-release-")
			if err != nil {
				return err
			}
			err = checkOut(ctx, root, commit, source)
			if err == nil {
				err = run(ctx, source, nil, "make", "build", "VCS=false", "OUT="+filepath.Join(target, "belfry"))
			}
			return errors.Join(err, os.RemoveAll(source))
		}})
	return filepath.Join(folder, "belfry"), err
}

// checkOut writes the files of a commit into a folder.
func checkOut(ctx context.Context, root, commit, folder string) error {
	archive := filepath.Join(folder, "source.tar")
	if out, err := exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", "--output="+archive,
		commit).CombinedOutput(); err != nil {
		return fmt.Errorf("the commit %s of the release is not in this clone (%s): tests of upgrades build it from "+
			"the history, which `git fetch --unshallow` fetches", commit, strings.TrimSpace(string(out)))
	}
	return errors.Join(run(ctx, folder, nil, "tar", "-xf", archive), os.Remove(archive))
}
