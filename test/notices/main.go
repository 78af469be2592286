// Command notices writes what a distribution of belfry has to say about the work of others in it: NOTICE names each Go
// module that is compiled into the program and each embedded asset, with its license and its notice, and
// THIRD_PARTY_LICENSES has the texts of the licenses. `make notices` runs it; a test fails while one of them is out of
// date.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The files that it writes, in the root of the project.
const (
	noticeFile   = "NOTICE"
	licensesFile = "THIRD_PARTY_LICENSES"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

func write() error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	all, err := works(root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, noticeFile), notice(all), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, licensesFile), licenses(all), 0o644)
}

// projectRoot is the folder of the project's go.mod.
func projectRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	return filepath.Dir(string(bytes.TrimSpace(out))), err
}
