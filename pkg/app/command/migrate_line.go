package command

import (
	"context"
	"fmt"
	"io"
	"os"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/operations/migrate"
)

// MigrateRequest asks for a migration.
type MigrateRequest struct {
	From string `required:"" help:"The configuration of the source." placeholder:"FILE"`
	To   string `required:"" help:"The configuration of the target." placeholder:"FILE"`
}

// Migration is Migrate. It copies and compares.
var Migration = Operation[MigrateRequest, MigrateReport, migrate.Progress]{
	Name: "migrate", Help: "Move stores and binaries to the backends of another configuration.", Bare: true,
	Run: func(ctx context.Context, _ *Place, q MigrateRequest, report func(migrate.Progress)) (*MigrateReport, error) {
		from, err := config.Load(q.From, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		to, err := config.Load(q.To, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		return Migrate(ctx, from, to, report)
	},
	Show: func(s Streams, _ MigrateRequest) (func(migrate.Progress), func(error)) {
		return Sometimes(writeMigrated(s.Err)), func(error) {}
	},
	Text: func(w io.Writer, _ MigrateRequest, r *MigrateReport) error { return writeMigration(w, r) },
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

func writeMigration(w io.Writer, r *MigrateReport) error {
	for _, name := range r.Stayed {
		fmt.Fprintf(w, "%s: not moved, its place is the same\n", name)
	}
	for _, one := range r.Binaries {
		writeMoved(w, one, fmt.Sprintf("%s, %d copied", count.Of(one.Records, "content"), one.Copied))
	}
	for _, one := range r.Stores {
		writeMoved(w,
			one, fmt.Sprintf("%s, %d copied, %s", count.Of(one.Records, "object"), one.Copied,
				count.Of(one.Events, "pending event")))
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, note)
	}
	if !r.Clean() {
		_, err := fmt.Fprintln(w, "something differs: it is damaged, was changed meanwhile, or was in the new place "+
			"before. Stop all programs that use either place, put it right, and migrate again")
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
