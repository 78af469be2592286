package floors

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	modulesOfMake = regexp.MustCompile(`(?m)^MODULES := (.*)$`)
	required      = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)( // indirect)?$`)
)

// make vet, make lint and make tidy are for every module.
func TestTheMakefileNamesEveryModule(t *testing.T) {
	var all []string
	for _, m := range modules(t) {
		all = append(all, m.Folder)
	}
	named := modulesOfMake.FindStringSubmatch(read(t, filepath.Join(root, "Makefile")))
	if named == nil || named[1] != strings.Join(all, " ") {
		t.Errorf("the Makefile has %q, and the project the modules %s", named, strings.Join(all, " "))
	}
}

// What belfry consists of, large tests and benchmarks use in the same version: else they would be of another belfry.
func TestModulesRequireTheSameVersions(t *testing.T) {
	requirements := func(folder string) map[string]string {
		all := map[string]string{}
		for _, r := range required.FindAllStringSubmatch(read(t, filepath.Join(root, folder, "go.mod")), -1) {
			all[r[1]] = r[2]
		}
		return all
	}
	own := requirements(".")
	if len(own) < 100 {
		t.Errorf("only %d requirements of belfry were found", len(own))
	}
	for _, m := range modules(t) {
		for name, version := range requirements(m.Folder) {
			if own[name] != "" && own[name] != version {
				t.Errorf("%s requires %s %s, and belfry %s: change both, and run `make tidy`", m.Folder, name, version,
					own[name])
			}
		}
	}
}
