package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/command"
	"belfry/pkg/operations/migrate"
)

type migrateCmd struct {
	From string `required:"" help:"The configuration of the source." placeholder:"FILE"`
	To   string `required:"" help:"The configuration of the target." placeholder:"FILE"`
	JSON bool   `name:"json" help:"Report as JSON."`
}

// Run copies and compares; after differences the exit code is 1.
func (c *migrateCmd) Run(ctx context.Context, s streams) error {
	from, err := config.Load(c.From, os.LookupEnv)
	if err != nil {
		return err
	}
	to, err := config.Load(c.To, os.LookupEnv)
	if err != nil {
		return err
	}
	r, err := command.Migrate(ctx, from, to, command.Sometimes(writeMigrated(s.err)))
	if err != nil {
		return err
	}
	return command.WriteReport(s.out, c.JSON, r, writeMigration)
}

func writeMigrated(w io.Writer) func(migrate.Progress) {
	return func(p migrate.Progress) {
		of := ""
		if p.Total > 0 {
			of = fmt.Sprintf(" of %d", p.Total)
		}
		fmt.Fprintf(w, "%s: %d%s, %d copied\n", p.What, p.Done, of, p.Copied)
	}
}

func writeMigration(w io.Writer, r *command.MigrateReport) error {
	for _, name := range r.Stayed {
		fmt.Fprintf(w, "%s: not moved, its place is the same\n", name)
	}
	for _, one := range r.Binaries {
		writeMoved(w, one, fmt.Sprintf("%s, %d copied", count.Of(one.Records, "content"), one.Copied))
	}
	for _, one := range r.Stores {
		writeMoved(w, one, fmt.Sprintf("%s, %d copied, %s", count.Of(one.Records, "object"), one.Copied, count.Of(one.Events, "pending event")))
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	if !r.Clean() {
		_, err := fmt.Fprintln(w, "something differs: it is damaged, was changed meanwhile, or was in the new place before. Stop whatever uses either place, put it right, and migrate again")
		return err
	}
	_, err := fmt.Fprintln(w, "everything is in the new place; serve with the new configuration")
	return err
}

func writeMoved(w io.Writer, one *migrate.Result, what string) {
	for _, d := range one.Differences {
		fmt.Fprintf(w, "%s %s\n", one.Name, d)
	}
	if one.More > 0 {
		fmt.Fprintf(w, "... and %d more\n", one.More)
	}
	fmt.Fprintf(w, "%s: %s, %s\n", one.Name, what, count.Of(int64(len(one.Differences))+one.More, "difference"))
}
