package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"belfry/internal/count"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/store/schema"
)

type schemaCmd struct {
	Check schemaCheckCmd `cmd:"" help:"Count the objects of a store that its schema would refuse, and show the first ten."`
}

type schemaCheckCmd struct {
	configuration
	Store   string `required:"" help:"Name of the store." placeholder:"NAME"`
	Schema  string `help:"A JSON Schema to check instead of that of the configuration." placeholder:"FILE" type:"existingfile"`
	Formats bool   `help:"With --schema: assert format, as with formats in the configuration."`
	JSON    bool   `name:"json" help:"Print one JSON object."`
}

// Run prints the objects that don't match. Its exit code is 1 when there are any.
func (c *schemaCheckCmd) Run(ctx context.Context, s streams) error {
	q := command.SchemaQuestion{Store: c.Store, Formats: c.Formats}
	if c.Formats && c.Schema == "" {
		return errs.New(errs.Invalid, "--formats is for --schema: the configuration says whether its schema asserts formats")
	}
	if c.Schema != "" {
		text, err := schema.Read(c.Schema)
		if err != nil {
			return errs.Wrap(err, errs.Invalid, "--schema can't be read")
		}
		q.Name, q.Schema = filepath.Base(c.Schema), text
	}
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	report, err := command.CheckSchema(ctx, loaded, q)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(s.out).Encode(report)
	} else {
		for _, o := range report.First {
			fmt.Fprintf(s.out, "%s %s: %s\n", c.Store, o.UUID, o.Message)
			for _, f := range o.Errors {
				fmt.Fprintf(s.out, "  %s (%s)\n", f, f.Keyword)
			}
		}
		if more := report.Failing - len(report.First); more > 0 {
			fmt.Fprintf(s.out, "and %d more\n", more)
		}
		_, err = fmt.Fprintf(s.out, "%s of %s checked, %s the schema\n", count.Of(report.Objects, "object"), c.Store, count.Of(report.Failing, "does not match", "do not match"))
	}
	if err == nil && report.Failing > 0 {
		return errFound
	}
	return err
}
