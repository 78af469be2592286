package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/test/kit/gotest"
)

const root = "../.."

func TestTheNoticesAreThoseOfWhatBelfryContains(t *testing.T) {
	read(t, "go.sum") // with a module the notices change, so the result of this test is not to be kept
	all, err := works(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{noticeFile: notice(all), licensesFile: licenses(all)} {
		if !bytes.Equal(read(t, name), want) {
			t.Errorf("%s is out of date: run `make notices`", name)
		}
	}
}

// What is found by itself is compared with what the project says that it uses.
func TestTheNoticeNamesWhatIsEmbeddedAndEveryModuleThatPackagesImport(t *testing.T) {
	text := string(read(t, noticeFile))
	var console struct{ Dependencies map[string]string }
	if err := json.Unmarshal(read(t, "tools/console/package.json"), &console); err != nil ||
		len(console.Dependencies) == 0 {
		t.Fatalf("no dependencies of the console: %v", err)
	}
	for name := range console.Dependencies {
		if strings.HasPrefix(name, "@codemirror/") || strings.HasPrefix(name, "@lezer/") {
			name = "codemirror" // their bundle
		}
		if name, _, _ = strings.Cut(strings.TrimSuffix(name, "-dist"), "."); !strings.Contains(text,
			"  "+name+" in pkg/api/console/assets (") {
			t.Errorf("%s has no %s", noticeFile, name)
		}
	}
	direct, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{if not .Indirect}}{{.Path}}{{end}}",
		"all").Output()
	if err != nil {
		t.Fatal(err)
	}
	used, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}",
		"belfry/cmd/belfry").Output()
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for module := range strings.FieldsSeq(string(direct)) {
		if module == "belfry" || !strings.Contains(string(used), "\n"+module+"\n") {
			continue // of tests
		}
		named++
		if !strings.Contains(text, "  "+module+" (") {
			t.Errorf("%s has no %s", noticeFile, module)
		}
	}
	if named < 20 {
		t.Errorf("only %d modules were found", named)
	}
}

// undistributed are phrases of licenses of what draws the figures of benchmarks, which are for no part of belfry.
var undistributed = []string{"Creative Commons Attribution 4.0 International Public License", "The FreeType License"}

// Large tests, benchmarks and examples are distributed as sources alone, so NOTICE has none of what they use. People
// build them nevertheless, so nothing is used whose license nobody has read.
func TestTheLicensesOfWhatEachModuleUsesAreKnown(t *testing.T) {
	all, err := gotest.Modules(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		read(t, filepath.Join(m.Folder, "go.sum"))
		used, err := modules(filepath.Join(root, m.Folder), "-test", "./...")
		if err != nil {
			t.Fatalf("%s: %v", m.Path, err)
		}
		for _, w := range used {
			if _, err := kinds(w.licenses); err != nil && !slices.ContainsFunc(undistributed,
				func(phrase string) bool { return strings.Contains(strings.Join(w.licenses, ""), phrase) }) {
				t.Errorf("%s uses %s: %v", m.Path, w.name, err)
			}
		}
		if len(used) == 0 {
			t.Errorf("%s uses nothing", m.Path)
		}
	}
}

func TestALicenseThatNobodyHasReadIsReported(t *testing.T) {
	if kind, err := kinds([]string{"You may use this on Sundays."}); err == nil {
		t.Errorf("it is %s", kind)
	}
	folder := t.TempDir()
	if _, err := fromFolder("example.com/none", folder); err == nil ||
		!strings.Contains(err.Error(), "example.com/none: no license") {
		t.Errorf("without a license: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "LICENSE.md"),
		[]byte("Permission is hereby granted,\n free of charge, to any person\r\nobtaining a copy"),
		0o600); err != nil {
		t.Fatal(err)
	}
	w, err := fromFolder("example.com/mit", folder)
	if err != nil {
		t.Fatal(err)
	}
	if kind, err := kinds(w.licenses); kind != "MIT" || err != nil {
		t.Errorf("%q, %v", kind, err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
