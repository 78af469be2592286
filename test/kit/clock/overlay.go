package clock

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stepped is a file that is added to Go's package time.
//
//go:embed stepped.go.txt
var stepped string

// What Now of Go's package time reads the clock with, and what replaces it.
const (
	readsClock = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	readsOurs  = "\tsec, nsec, mono := runtimeNow()\n\tsec, nsec = stepped(sec, nsec)\n\tif mono == 0 {"
)

// Overlay writes the files with which `go build -overlay` builds a program whose wall clock can be
// stepped, and returns the argument of -overlay. goroot is that of the go command.
func Overlay(goroot, folder string) (path string, err error) {
	source := filepath.Join(goroot, "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), readsClock) != 1 {
		return "", fmt.Errorf("%s does not read the clock as it used to: adapt package clock to this version of Go",
			source)
	}
	patched := filepath.Join(folder, "time.go")
	added := filepath.Join(folder, "stepped.go")
	path = filepath.Join(folder, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {
		source: patched, filepath.Join(goroot, "src", "time", "stepped.go"): added,
	}})
	return path, errors.Join(err,
		os.WriteFile(patched, []byte(strings.Replace(string(text), readsClock, readsOurs, 1)), 0o600),
		os.WriteFile(added, []byte(stepped), 0o600),
		os.WriteFile(path, list, 0o600))
}
