package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app/command"

	"github.com/alecthomas/kong"
)

// What --help prints of every command is what it printed before. Where it is meant to change, go test ./cmd/belfry -run
// Help -update writes it.
func TestHelpOfEveryCommand(t *testing.T) {
	const file = "testdata/help.txt"
	var all bytes.Buffer
	var walk func(n *kong.Node, args ...string)
	walk = func(n *kong.Node, args ...string) {
		help := append(slices.Clone(args), "--help")
		out, _ := say(t, exitDone, "", help...)
		all.WriteString("$ belfry " + strings.Join(help, " ") + "\n" + out + "\n")
		for _, child := range n.Children {
			if child.Type == kong.CommandNode {
				walk(child, append(slices.Clone(args), child.Name)...)
			}
		}
	}
	walk(newParser(allCommands(command.Operations), streams{}, func(int) {}).Model.Node)
	if *update {
		if err := os.WriteFile(file, all.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, now := strings.Split(string(want), "\n"), strings.Split(all.String(), "\n")
	for i := range min(len(before), len(now)) {
		if before[i] != now[i] {
			t.Fatalf("%s:%d: %q is %q now", file, i+1, before[i], now[i])
		}
	}
	if len(before) != len(now) {
		t.Errorf("%s has %d lines, and there are %d now", file, len(before), len(now))
	}
}
