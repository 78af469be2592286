package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"belfry/pkg/app/command"
	"belfry/test/manual/docpages"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *```[a-z]*.*?^ *```")
	spanned = regexp.MustCompile("`((?:\\./|bin/|/)?belfry [a-z][^`]*)`")
	called  = regexp.MustCompile(
		`(?:^|[|;&(=] *|\$ |exec -it [A-Z]+ |exec [a-z0-9-]+ )(?:\./|bin/|/|/usr/local/bin/|\.\./belfry/bin/)?belfry ([a-z][^|;&>)]*)`)
	flagName = regexp.MustCompile(`^--([a-z][a-z0-9-]*)`)
)

// A command that a page shows, in a code block or in a text, is one of the program, and so are its flags.
func TestCommandsOfPagesExist(t *testing.T) {
	model := newParser(allCommands(command.Operations), streams{}, func(int) {}).Model
	commands := model.Leaves(true)
	checked := 0
	check := func(page, line string) {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		var command *kong.Node
		for _, c := range commands {
			path := strings.Fields(strings.TrimPrefix(c.FullPath(), "belfry "))
			if len(words) >= len(path) && slices.Equal(words[:len(path)], path) &&
				(command == nil || len(path) > len(strings.Fields(command.FullPath()))-1) {
				command = c
			}
		}
		if command == nil {
			if !slices.ContainsFunc(model.Children, func(n *kong.Node) bool { return n.Name == words[0] }) {
				t.Errorf("%s: there is no command belfry %s", page, line)
			}
			return // a group of commands, such as belfry backup
		}
		checked++
		for _, word := range words {
			m := flagName.FindStringSubmatch(word)
			if m == nil || m[1] == "help" || m[1] == "version" {
				continue
			}
			if !slices.ContainsFunc(slices.Concat(command.AllFlags(true)...),
				func(f *kong.Flag) bool { return f.Name == m[1] }) {
				t.Errorf("%s: belfry %s has no flag --%s", page, strings.TrimPrefix(command.FullPath(), "belfry "),
					m[1])
			}
		}
	}
	pages, err := docpages.Files("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.ReplaceAll(string(text), "\\\n", " ")
		for _, block := range fenced.FindAllString(page, -1) {
			for line := range strings.Lines(block) {
				for _, m := range called.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
					check(path, m[1])
				}
			}
		}
		for _, m := range spanned.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
			_, line, _ := strings.Cut(m[1], "belfry ")
			check(path, line)
		}
	}
	if checked < 200 {
		t.Errorf("only %d commands were found", checked)
	}
}
