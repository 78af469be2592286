package main

import (
	"cmp"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"belfry/pkg/app/command"
)

// grammarOf returns the commands and flags by which a command line is read. For the line of a command it has this
// command alone: reading the tags of all takes longer than some commands do.
func grammarOf(args []string, operations []*command.Untyped) any {
	if len(args) > 0 {
		if own, known := ownCommand(args[0]); known {
			return own
		}
		if added := commandsOf(operations, args[0]); added != nil {
			return &operationsOnly{Plugins: added}
		}
	}
	return allCommands(operations)
}

// operationsOnly is a grammar without the commands of the cli itself.
type operationsOnly struct {
	VersionFlag versionFlag `name:"version" help:"Print the version."`
	kong.Plugins
}

// allCommands is the grammar of all commands.
func allCommands(operations []*command.Untyped) *cli {
	return &cli{Plugins: commandsOf(operations, "")}
}

// ownCommand returns the grammar of one command of the cli itself.
func ownCommand(name string) (grammar any, known bool) {
	all := reflect.TypeFor[cli]()
	version, _ := all.FieldByName("VersionFlag")
	for i := range all.NumField() {
		f := all.Field(i)
		_, isCommand := f.Tag.Lookup("cmd")
		if isCommand && cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name)) == name {
			return reflect.New(reflect.StructOf([]reflect.StructField{f, version})).Interface(), true
		}
	}
	return nil, false
}
