package main

import (
	"fmt"
	"strings"

	"belfry/test/kit/gotest"
)

// mutant is one change of the code and the tests that must fail then.
type mutant struct {
	name    string
	line    int    // of the list
	file    string // from the project's root
	find    string // part of one line of the file, or of several joined by \n
	replace string
	test    []string // arguments of go test, with packages of one module, each as ./folder from the project's root
}

// parse reads the list: paragraphs of "key: value" lines, whose keys are mutant, file, find, with and
// test. Lines that begin with # are comments.
func parse(text string) ([]mutant, error) {
	var all []mutant
	var m *mutant
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.ReplaceAll(strings.TrimSpace(value), `\n`, "\n")
		if key == "mutant" {
			all = append(all, mutant{name: value, line: i + 1})
			m = &all[len(all)-1]
			continue
		}
		if m == nil {
			return nil, fmt.Errorf("line %d: expected \"mutant: NAME\" first", i+1)
		}
		switch key {
		case "file":
			m.file = value
		case "find":
			m.find = value
		case "with":
			m.replace = value
		case "test":
			m.test = strings.Fields(value)
		default:
			return nil, fmt.Errorf("line %d: unknown key %q", i+1, key)
		}
	}
	for _, m := range all {
		if m.file == "" || m.find == "" || len(m.test) == 0 {
			return nil, fmt.Errorf("line %d: %s: file, find and test are required", m.line, m.name)
		}
	}
	return all, nil
}

// apply returns the changed source. The text to find must occur once.
func (m mutant) apply(source string) (string, error) {
	if n := strings.Count(source, m.find); n != 1 {
		return "", fmt.Errorf("%q occurs %d times in %s", m.find, n, m.file)
	}
	return strings.Replace(source, m.find, m.replace, 1), nil
}

// within returns the folder of the module whose tests the mutant names, and the arguments of go test there.
func (m mutant) within(modules []gotest.Module) (folder string, test []string, err error) {
	for _, word := range m.test {
		if !strings.HasPrefix(word, "./") {
			test = append(test, word)
			continue
		}
		parts := gotest.Parts(modules, word)
		if len(parts) != 1 || folder != "" && folder != parts[0].Folder {
			return "", nil, fmt.Errorf("%s is of several modules, or not of that of the packages before it", word)
		}
		folder, test = parts[0].Folder, append(test, parts[0].Patterns...)
	}
	if folder == "" {
		return "", nil, fmt.Errorf("no package of %q begins with ./", m.test)
	}
	return folder, test, nil
}
