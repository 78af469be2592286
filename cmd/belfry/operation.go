package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"github.com/alecthomas/kong"

	"belfry/pkg/app/command"
)

// operationCmd is a command that is no more than an operation.
type operationCmd struct {
	configuration
	In   any  `embed:""`
	JSON bool `name:"json" help:"Report as JSON."`
	line command.Line
}

// Run does the operation. If its result says that not all is right the exit code is 1.
func (c *operationCmd) Run(ctx context.Context, s streams) error {
	limitCollector()
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	r, err := c.line.Do(ctx, loaded, s.err, isTerminal(s.err))
	if err != nil {
		return err
	}
	return writeResult(s.out, c.JSON, r, func(w io.Writer, r command.Result) error { return r.WriteText(w) })
}

// operationsAfter is the command after which those of operations are listed.
const operationsAfter = "config"

// operationCommands are the options that add the commands of operations.
func operationCommands(operations []command.Request) (options []kong.Option) {
	for _, o := range operations {
		if line := o.Line(); line.Help != "" {
			options = append(options, kong.DynamicCommand(line.Name, line.Help, "", &operationCmd{In: line.In, line: line}))
		}
	}
	return options
}

// placeOperations moves the last commands, those of operations, to their place in the list.
func placeOperations(root *kong.Node, operations int) {
	static := len(root.Children) - operations
	at := slices.IndexFunc(root.Children, func(n *kong.Node) bool { return n.Name == operationsAfter }) + 1
	root.Children = slices.Concat(root.Children[:at], root.Children[static:], root.Children[at:static])
}

// writeResult writes a report, as JSON or text, and returns errFound if it is not clean.
func writeResult[R any](w io.Writer, asJSON bool, report R, write func(io.Writer, R) error) (err error) {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = write(w, report)
	}
	if r, checks := any(report).(interface{ Clean() bool }); err == nil && checks && !r.Clean() {
		return errFound
	}
	return err
}
