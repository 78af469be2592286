package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"belfry/config"
	"belfry/internal/memory"
	"belfry/pkg/app/command"
)

// operationCmd is a command that is no more than an operation.
type operationCmd struct {
	configuration
	Flags any `embed:""`
	line  command.Line
}

// bareCmd is a command that needs no configuration.
type bareCmd struct {
	Flags any `embed:""`
	line  command.Line
}

// Run does the operation.
func (c *bareCmd) Run(ctx context.Context, s streams) error { return runLine(ctx, c.line, nil, s) }

// Run does the operation.
func (c *operationCmd) Run(ctx context.Context, s streams) error {
	return runLine(ctx, c.line, c.loadFor, s)
}

func runLine(ctx context.Context, line command.Line, load func() (*config.Config, error), s streams) error {
	memory.TuneCommand()
	return line.Run(ctx, load, command.Streams{
		In: s.in, Out: s.out, Err: s.err, Terminal: isTerminal(s.err),
		Password: func(ctx context.Context) (string, error) { return readPassword(ctx, s) },
		Confirm:  func(ctx context.Context, question string) error { return confirm(ctx, s, question) },
	})
}

// loadFor reads the configuration. It is not read where the data folder is all that is needed, and a flag names it: a
// service has its own environment, without which its file may not be valid here.
func (c *operationCmd) loadFor() (*config.Config, error) {
	if !c.line.Folder || c.Data == "" {
		return c.load("")
	}
	folder, err := filepath.Abs(c.Data)
	return &config.Config{Data: folder}, err
}

// groups say what commands are about whose first word they have in common.
var groups = map[string]string{
	"access": "Explain who may do what.", "schema": "Check objects against a schema.",
	"user": "Create and manage users.", "user key": "Create and revoke API keys of a user.",
	"dlq":      "List, redeliver and delete the dead letters of listeners.",
	"listener": "Show the state of listeners, and reset their position.",
	"bus":      "Set up a bus whose users have few permissions.", "events": "Read the log of events.",
	"mail": "Try whether mails are sent.", "seal-keys": "Change the key that encrypts cursors and ids of events.",
	"backup": "Make, list and verify backups.",
}

// after says where commands of operations are listed: after one of this package, or else after the operation before.
var after = map[string]string{"reload": "serve", "verify": "config", "export": "import"}

// word is a command, or what commands have in common that begin with the same words.
type word struct {
	words    string
	line     *command.Line // nil: of a group
	children []*word
}

// add adds a command below w.
func (w *word) add(line command.Line, words []string) {
	if len(words) == 0 {
		w.line = &line
		return
	}
	at := slices.IndexFunc(w.children, func(c *word) bool { return strings.HasSuffix(" "+c.words, " "+words[0]) })
	if at < 0 {
		at = len(w.children)
		w.children = append(w.children, &word{words: strings.TrimSpace(w.words + " " + words[0])})
	}
	w.children[at].add(line, words[1:])
}

// value is the command as a struct with the tags of kong.
func (w *word) value() reflect.Value {
	switch {
	case w.line != nil && w.line.Bare:
		return reflect.ValueOf(bareCmd{Flags: w.line.Flags, line: *w.line})
	case w.line != nil:
		return reflect.ValueOf(operationCmd{Flags: w.line.Flags, line: *w.line})
	}
	fields, values := []reflect.StructField{}, []reflect.Value{}
	for i, c := range w.children {
		help, v := groups[c.words], c.value()
		tag := `cmd:"" name:` + strconv.Quote(c.words[strings.LastIndex(c.words, " ")+1:])
		if c.line != nil {
			help = c.line.Help
			if c.line.Default {
				tag += ` default:"withargs"`
			}
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("C", i), Type: v.Type(),
			Tag: reflect.StructTag(tag + " help:" + strconv.Quote(help))})
		values = append(values, v)
	}
	all := reflect.New(reflect.StructOf(fields)).Elem()
	for i, v := range values {
		all.Field(i).Set(v)
	}
	return all
}

// commandsOf are the commands of operations, to be embedded: those with a first word, or all if it is empty.
func commandsOf(operations []*command.Untyped, first string) kong.Plugins {
	var root word
	for _, o := range operations {
		for _, line := range o.Lines() {
			if words := strings.Fields(line.Words); first == "" || words[0] == first {
				root.add(line, words)
			}
		}
	}
	if root.children == nil {
		return nil
	}
	all := root.value()
	p := reflect.New(all.Type())
	p.Elem().Set(all)
	return kong.Plugins{p.Interface()}
}

// placeOperations moves the last commands, those of operations, to their places in the list.
func placeOperations(root *kong.Node) {
	last := slices.IndexFunc(root.Children, func(n *kong.Node) bool { return n.Name == lastOwn }) + 1
	own, added := slices.Clone(root.Children[:last]), root.Children[last:]
	before := lastOwn
	for _, n := range added {
		before = cmp.Or(after[n.Name], before)
		at := slices.IndexFunc(own, func(n *kong.Node) bool { return n.Name == before }) + 1
		own = slices.Insert(own, at, n)
		before = n.Name
	}
	root.Children = own
}
