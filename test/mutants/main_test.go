package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/test/kit/gotest"
)

const root = "../.."

// A list that no longer fits the code would guard nothing.
func TestEveryMutantAppliesToTheCode(t *testing.T) {
	text, err := os.ReadFile("list")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Errorf("%d mutants", len(all))
	}
	modules, err := gotest.Modules(root)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range all {
		if names[m.name] {
			t.Errorf("line %d: %s is in the list twice", m.line, m.name)
		}
		names[m.name] = true
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			t.Errorf("line %d: %s: %v", m.line, m.name, err)
			continue
		}
		if changed, err := m.apply(string(source)); err != nil || changed == string(source) {
			t.Errorf("line %d: %s: %v", m.line, m.name, err)
		}
		if _, _, err := m.within(modules); err != nil {
			t.Errorf("line %d: %s: %v", m.line, m.name, err)
		}
		for _, word := range m.test {
			if _, err := os.Stat(filepath.Join(root, word)); err != nil && strings.HasPrefix(word, "./") {
				t.Errorf("line %d: %s: %v", m.line, m.name, err)
			}
		}
	}
}

func TestAMutantRunsInTheModuleOfItsTests(t *testing.T) {
	modules := []gotest.Module{{Path: "belfry", Folder: "."}, {Path: "belfry/test/chaos", Folder: "test/chaos"}}
	for test, want := range map[string][]string{
		"./pkg/store ./pkg/api -run X":              {".", "./pkg/store", "./pkg/api", "-run", "X"},
		"-run X ./test/chaos/disk":                  {"test/chaos", "-run", "X", "./disk"},
		"./test/chaos -soak.rounds=9 -chaos.only=x": {"test/chaos", "./.", "-soak.rounds=9", "-chaos.only=x"},
		"./test/chaos ./pkg/store":                  nil,
		"-run X":                                    nil,
	} {
		folder, args, err := mutant{test: strings.Fields(test)}.within(modules)
		if got := append([]string{folder}, args...); (err != nil) != (want == nil) ||
			err == nil && !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", test, got, err)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse("# comment\n\nmutant: a name: with a colon\nfile: pkg/a.go\nfind: if ok {\\nreturn\nwith: if " +
		"false {\ntest: ./pkg -run TestA\n")
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	m := got[0]
	if m.name != "a name: with a colon" || m.line != 3 || m.find != "if ok {\nreturn" || m.replace != "if false {" ||
		len(m.test) != 3 {
		t.Errorf("%+v", m)
	}
	for _, text := range []string{"file: a\n", "mutant: a\nfind: x\n", "mutant: a\ncolor: red\n"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
