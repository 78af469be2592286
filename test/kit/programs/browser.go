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
	return fromDebian("the tests of pages need Chromium", headlessShell, headlessShell, "chromium", "chromium-browser",
		"google-chrome")
}

// Command returns the path of a program that the commands of the documentation use, that of the machine. If there is
// none, it installs Debian's package of this name where this process may.
func Command(name string) (string, error) {
	return fromDebian("the commands of the documentation need "+name, name, name)
}

// fromDebian returns the path of the first of several programs, and installs a package if there is none.
func fromDebian(need, pkg string, names ...string) (string, error) {
	find := func() (string, bool) {
		for _, name := range names {
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
		return "", errors.New(need + ": install it with apt-get install --no-install-recommends " + pkg +
			", or run make prepare as root")
	}
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if err := run(ctx, "/", env, "apt-get", "install", "-y", "--no-install-recommends", pkg); err != nil {
		return "", fmt.Errorf("%s, which can't be installed: %w", need, err)
	}
	path, ok := find()
	if !ok {
		return "", errors.New("apt-get has installed " + pkg + ", but there is no such program")
	}
	return path, nil
}
