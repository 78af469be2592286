package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"belfry/test/kit"
)

// headlessShell is the package of Debian, and its program.
const headlessShell = "chromium-headless-shell"

// Chromium returns the path of a Chromium, that of the machine. If there is none, it installs Debian's where this
// process may: the headless shell, which has no windows to draw, and takes a quarter less CPU time for the same pages.
func Chromium() (string, error) {
	find := func() (string, bool) {
		for _, name := range []string{headlessShell, "chromium", "chromium-browser", "google-chrome"} {
			if path, err := exec.LookPath(name); err == nil {
				return path, true
			}
		}
		return "", false
	}
	if path, ok := find(); ok {
		return path, nil
	}
	if os.Getuid() != 0 {
		return "", errors.New("the tests of pages need Chromium: install it with apt-get install --no-install-recommends " + headlessShell + ", or run make prepare as root")
	}
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if err := run(ctx, "/", env, "apt-get", "install", "-y", "--no-install-recommends", headlessShell); err != nil {
		return "", fmt.Errorf("the tests of pages need Chromium, which can't be installed: %w", err)
	}
	path, ok := find()
	if !ok {
		return "", errors.New("apt-get has installed " + headlessShell + ", but there is no such program")
	}
	return path, nil
}
