package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"belfry/test/kit"
)

// lists returns the packages of all modules that have tests, what make test leaves out, and what it builds without the
// race detector.
func lists(t *testing.T) (all []*target, rest []moved, plain []string) {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	all, err := list(t.Context(), []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	if rest, err = parseRest(restText); err != nil {
		t.Fatal(err)
	}
	return all, rest, parsePlain(plainText)
}

// Each package is in exactly one of make test and make test-all; of one that is in make test, tests may be in make
// test-all instead. So no test is lost. What make test runs without the race detector, make test-all runs with it.
func TestEachTestIsInOneSet(t *testing.T) {
	all, rest, plain := lists(t)
	functions := map[string][]string{}
	for _, p := range all {
		functions[p.path] = testsOf(t, p.folder)
	}
	for _, m := range rest {
		of, known := functions["belfry/"+m.path]
		name, _, _ := strings.Cut(m.test, "/")
		if !known || m.test != "" && !slices.Contains(of, name) {
			t.Errorf("test/suite/rest has %s %s, which no module has", m.path, m.test)
		}
	}
	for i, name := range plain {
		if functions["belfry/"+name] == nil || slices.Contains(plain[:i], name) {
			t.Errorf("test/suite/plain has %s, which has no tests, or is in it twice", name)
		}
	}
	quick, err := choose(setTest, copies(all), rest, plain)
	if err != nil {
		t.Fatal(err)
	}
	others, err := choose(setRest, copies(all), rest, plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		inQuick, skipped := argument(quick, p.path, "-test.skip=")
		inRest, run := argument(others, p.path, "-test.run=")
		again := slices.Contains(plain, strings.TrimPrefix(p.path, "belfry/"))
		switch {
		case !inQuick && !inRest:
			t.Errorf("%s is in neither set", p.path)
		case again && (!inQuick || !inRest || run != ""):
			t.Errorf("%s: make test runs it without the race detector, and make test-all not all of it with it", p.path)
		case !again && inQuick && inRest && (skipped == "" || skipped != run):
			t.Errorf("%s: make test without %q, make test-all with %q", p.path, skipped, run)
		case inQuick &&
			!slices.ContainsFunc(functions[p.path], func(name string) bool { return !matches(skipped, name) }):
			t.Errorf("%s: every test is in test/suite/rest: list the package", p.path)
		}
	}
	for _, p := range others {
		if p.plain {
			t.Errorf("%s has no race detector in make test-all", p.path)
		}
	}
}

// testsOf returns the names of the tests, examples and fuzz targets in a folder.
func testsOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil &&
				regexp.MustCompile(`^(Test|Example|Fuzz)`).MatchString(f.Name.Name) && f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

func copies(all []*target) (out []*target) {
	for _, t := range all {
		one := *t
		out = append(out, &one)
	}
	return out
}

// argument reports whether a package is in a set, and the value of an argument with which it runs.
func argument(set []*target, name, flag string) (is bool, value string) {
	for _, p := range set {
		if p.path != name {
			continue
		}
		for _, arg := range p.args {
			if rest, found := strings.CutPrefix(arg, flag); found {
				value = rest
			}
		}
		return true, value
	}
	return false, ""
}

// matches reports whether a pattern of -test.skip matches a test with all its subtests.
func matches(pattern, name string) bool {
	for one := range strings.SplitSeq(pattern, "|") {
		if pattern != "" && !strings.Contains(one, "/") && regexp.MustCompile(one).MatchString(name) {
			return true
		}
	}
	return false
}

func TestTheListIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"# only a comment\n\ntest/a # long\ntest/b TestX/y # slow\n": "",
		"test/a\n":                             "the reason is missing",
		"test/a TestX TestY # both\n":          "expected a package",
		"test/a # long\ntest/a # long\n":       "is in the list already",
		"test/a # long\ntest/a TestX # long\n": "is in the list already",
	} {
		all, err := parseRest(text)
		if want == "" &&
			(err != nil || !slices.Equal(all, []moved{{"test/a", "", "long"}, {"test/b", "TestX/y", "slow"}})) {
			t.Errorf("%v, %v", all, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestASetThatIsUnknownIsRefused(t *testing.T) {
	if _, err := choose("quick", nil, nil, nil); err == nil || !strings.Contains(err.Error(), `"quick" is unknown`) {
		t.Error(err)
	}
}

func TestATestOfTheListThatDoesNotRunIsMissed(t *testing.T) {
	if got := pattern([]string{"TestX/a.b", "TestY"}); got != `^TestX$/^a\.b$|^TestY$` {
		t.Error(got)
	}
	output := []byte("=== RUN   TestX\n    --- PASS: TestX/a (0.00s)\n--- PASS: TestX (0.00s)\n--- FAIL: TestY " +
		"(1.00s)\n")
	if got := missing([]string{"TestX/a", "TestX/b", "TestY", "TestZ"}, output); !slices.Equal(got,
		[]string{"TestX/b", "TestZ"}) {
		t.Error(got)
	}
	t.Setenv(role, "passes")
	target := built(t, "belfry/a")
	target.must = []string{"TestX"}
	if r := run(t.Context(), target, kit.Limit); r.err == nil || !strings.Contains(r.err.Error(), "TestX") {
		t.Error(r.err)
	}
}
