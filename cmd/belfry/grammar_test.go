package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/alecthomas/kong"

	"belfry/pkg/app/command"
)

// The line of a command is read with the flags of this command alone, which are those that it has among all.
func TestALineIsReadWithItsCommandAlone(t *testing.T) {
	grammar := func(args ...string) *kong.Node {
		return newParser(grammarOf(args, command.Operations), streams{}, func(int) {}).Model.Node
	}
	all := newParser(allCommands(command.Operations), streams{}, func(int) {}).Model.Node
	for _, n := range all.Children {
		own := grammar(n.Name)
		if len(own.Children) != 1 || own.Children[0].Name != n.Name ||
			!slices.Equal(namesOf(own.Children[0]), namesOf(n)) {
			t.Errorf("%s: %v, not %v", n.Name, namesOf(own), namesOf(n))
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"serv"}, {"--version", "serve"}} {
		if got := grammar(args...); !reflect.DeepEqual(namesOf(got), namesOf(all)) {
			t.Errorf("%v: %v", args, namesOf(got))
		}
	}
}

// namesOf returns the flags and the commands of a command.
func namesOf(n *kong.Node) (all []string) {
	for _, f := range n.Flags {
		all = append(all, "--"+f.Name)
	}
	for _, child := range n.Children {
		all = append(all, child.Name)
		all = append(all, namesOf(child)...)
	}
	return all
}
