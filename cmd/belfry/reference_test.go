package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app/command"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md")

// common is how many commands have a flag that the page describes once.
const common = 3

const introduction = `# Commands

All commands of ` + "`belfry`" + `, with their arguments and flags. ` + "`belfry COMMAND --help`" +
	` prints the same for one command. ` + "`make manual`" + ` generates this page from the program.

Most commands can run while ` +
	"`belfry serve`" +
	` uses the same data: they ask the serving process. Each flag that names a variable in parentheses can also be set by it.

| exit code | meaning |
|---|---|
| 0 | The command succeeded. A ` + "`serve`" + ` was stopped by a signal. |
| 1 | A check found differences, or the command failed. |
| 2 | The usage or the configuration is wrong. |
| 130 | The command was interrupted. ` + "`belfry events tail`" + ` always ends this way. |

`

// People read in docs/reference/cli.md which commands and flags there are.
func TestTheReferenceOfCommandsIsUpToDate(t *testing.T) {
	const page = "../../docs/reference/cli.md"
	text := reference(newParser(allCommands(command.Operations), streams{}, func(int) {}).Model)
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("docs/reference/cli.md is out of date: run `make manual` (%v)", err)
	}
}

// reference is the page of all commands.
func reference(model *kong.Application) string {
	commands := model.Leaves(true)
	used := map[string]int{}
	for _, c := range commands {
		for _, f := range flagsOf(c) {
			used[row(f)]++
		}
	}
	var b strings.Builder
	b.WriteString(introduction + "## Common flags\n\nThe section of a command names those that it takes.\n\n" + table)
	for _, r := range slices.Sorted(maps.Keys(used)) {
		if used[r] >= common {
			b.WriteString(r)
		}
	}
	group := ""
	for _, c := range commands {
		path := strings.TrimPrefix(c.FullPath(), "belfry ")
		if first, _, several := strings.Cut(path, " "); several && first != group {
			group = first
			fmt.Fprintf(&b, "\n## belfry %s\n\n%s\n", first, c.Parent.Help)
		}
		level := "##"
		if strings.Contains(path, " ") {
			level = "###"
		}
		fmt.Fprintf(&b, "\n%s belfry %s\n\n%s\n", level, path, sentence(c.Help))
		for i, a := range c.Positional {
			if i == 0 {
				b.WriteString("\n| argument | meaning |\n|---|---|\n")
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Trim(a.Summary(), "[]"), cell(a.Help))
		}
		b.WriteString(flagsOfPage(c, used))
	}
	return b.String()
}

const table = "| flag | meaning |\n|---|---|\n"

// flagsOfPage are the flags of a command that are not common, and the names of those that are.
func flagsOfPage(c *kong.Node, used map[string]int) string {
	own, shared := "", []string(nil)
	for _, f := range flagsOf(c) {
		if r := row(f); used[r] < common {
			own += r
		} else {
			shared = append(shared, "`--"+f.Name+"`")
		}
	}
	if own != "" {
		own = "\n" + table + own
	}
	if len(shared) > 0 {
		own += "\nCommon: " + strings.Join(shared, ", ") + "\n"
	}
	return own
}

// flagsOf are the flags of a command, without those that all have.
func flagsOf(c *kong.Node) (all []*kong.Flag) {
	for _, group := range c.AllFlags(true) {
		for _, f := range group {
			if f.Name != "help" && f.Name != "version" {
				all = append(all, f)
			}
		}
	}
	return all
}

func row(f *kong.Flag) string {
	name := f.String()
	if short, long, ok := strings.Cut(name, ", "); ok {
		name = short + "`, `" + long
	}
	return fmt.Sprintf("| `%s` | %s |\n", strings.ReplaceAll(name, "|", "\\|"), cell(help(f)))
}

// help is the text of a flag as --help prints it, with its variables.
func help(f *kong.Flag) string {
	text := kong.DefaultHelpValueFormatter(f.Value)
	return strings.TrimSpace(text)
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "\\<").Replace(strings.Join(strings.Fields(text), " "))
}

func sentence(text string) string { return strings.Join(strings.Fields(text), " ") }
