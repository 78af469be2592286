package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The sets of tests. Each test of the project is in exactly one.
const (
	setTest = "test" // make test: every test but those of the list
	setRest = "rest" // make test-all: the tests of the list
)

//go:embed rest
var restText string

//go:embed plain
var plainText string

// moved is a line of the list: a package, or tests of it, that make test-all runs and make test does not.
type moved struct {
	path string // of the package, from the module's root: "test/image"
	test string // "TestConformance/dynalite"; "" for the whole package
	why  string
}

// parseRest reads the list: a package, perhaps a test of it, and after a # the reason.
func parseRest(text string) (all []moved, err error) {
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		entry, why, _ := strings.Cut(line, "#")
		words := strings.Fields(entry)
		if len(words) == 0 {
			continue
		}
		m := moved{path: words[0], why: strings.TrimSpace(why)}
		if len(words) == 2 {
			m.test = words[1]
		}
		switch {
		case len(words) > 2:
			return nil, fmt.Errorf("%q: expected a package, a test, and # with the reason", line)
		case m.why == "":
			return nil, fmt.Errorf("%q: the reason is missing, after a #", line)
		case seen[m.path+" "+m.test] || m.test != "" && seen[m.path+" "]:
			return nil, fmt.Errorf("%q is in the list already", line)
		}
		seen[m.path+" "+m.test] = true
		all = append(all, m)
	}
	return all, nil
}

// parsePlain reads the list of packages that make test builds without the race detector.
func parsePlain(text string) (all []string) {
	for line := range strings.Lines(text) {
		entry, _, _ := strings.Cut(line, "#")
		if entry = strings.TrimSpace(entry); entry != "" {
			all = append(all, entry)
		}
	}
	return all
}

// choose returns the packages of a set, each with the arguments that select its tests of that set. Packages that make
// test runs without the race detector are in the rest too, with it. Without the name of a set it returns all.
func choose(set string, all []*target, rest []moved, plain []string) ([]*target, error) {
	switch set {
	case "":
		return all, nil
	case setTest, setRest:
	default:
		return nil, fmt.Errorf("-set: %q is unknown: there are %s and %s", set, setTest, setRest)
	}
	var chosen []*target
	for _, t := range all {
		name := strings.TrimPrefix(t.path, "belfry/")
		var tests []string
		whole := false
		for _, m := range rest {
			if m.path == name {
				whole = whole || m.test == ""
				tests = append(tests, m.test)
			}
		}
		isPlain := slices.Contains(plain, name)
		if whole && isPlain {
			return nil, fmt.Errorf("%s is in test/suite/rest and in test/suite/plain, which is about make test", name)
		}
		switch {
		case set == setTest && whole, set == setRest && len(tests) == 0 && !isPlain:
			continue
		case set == setTest:
			t.plain = isPlain
			if len(tests) > 0 {
				t.args = []string{"-test.skip=" + pattern(tests)}
			}
		case isPlain && len(tests) > 0: // all of it, with them
			t.args, t.must = []string{"-test.v"}, tests
		case !whole && !isPlain:
			t.args, t.must = []string{"-test.run=" + pattern(tests), "-test.v"}, tests
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// pattern matches exactly the tests with the names.
func pattern(tests []string) string {
	var all []string
	for _, test := range tests {
		var levels []string
		for level := range strings.SplitSeq(test, "/") {
			levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
		}
		all = append(all, strings.Join(levels, "/"))
	}
	return strings.Join(all, "|")
}

var ran = regexp.MustCompile(`(?m)^\s*--- (?:PASS|FAIL): (\S+) \(`)

// missing returns the tests of which the output of -test.v says nothing: a name that no test has runs none, and passes.
func missing(must []string, output []byte) []string {
	if len(must) == 0 {
		return nil
	}
	found := map[string]bool{}
	for _, m := range ran.FindAllSubmatch(output, -1) {
		found[string(m[1])] = true
	}
	return slices.DeleteFunc(slices.Clone(must), func(test string) bool { return found[test] })
}
