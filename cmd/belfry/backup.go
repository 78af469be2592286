package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
)

type backupCmd struct {
	Make   backupMakeCmd   `cmd:"" default:"withargs" help:"Make a backup (default)."`
	List   backupListCmd   `cmd:"" help:"List the backups of a destination."`
	Verify backupVerifyCmd `cmd:"" help:"Read a backup and compare each part with its hash."`
}

// place is where backups are.
type place struct {
	configuration
	Place string `name:"place" help:"Where the backups are, instead of the configured place." placeholder:"FOLDER|s3://BUCKET/PREFIX"`
}

// parse returns the place of the flag, nil without one.
func (p *place) parse() (*config.BackupPlace, error) {
	if p.Place == "" {
		return nil, nil
	}
	parsed, err := config.ParseBackupPlace(p.Place)
	if err != nil {
		return nil, errs.New(errs.Invalid, "--place: %v", err)
	}
	return parsed, nil
}

// open reads the configuration and the flag.
func (p *place) open() (*config.Config, *config.BackupPlace, error) {
	given, err := p.parse()
	if err != nil {
		return nil, nil, err
	}
	loaded, err := p.load("")
	return loaded, given, err
}

type backupMakeCmd struct {
	place
	JSON bool `name:"json" help:"Report as JSON."`
}

// Run makes a backup. If it lacks something the exit code is 1.
func (c *backupMakeCmd) Run(ctx context.Context, s streams) error {
	loaded, to, err := c.open()
	if err != nil {
		return err
	}
	r, err := command.Backup(ctx, loaded, command.BackupOptions{To: to, Progress: sometimes(writeBackedUp(s.err))})
	if err != nil {
		return err
	}
	return writeResult(s.out, c.JSON, r, writeBackup)
}

func writeBackedUp(w io.Writer) func(backup.Progress) {
	return func(p backup.Progress) { fmt.Fprintf(w, "%s: %d\n", p.What, p.Done) }
}

func writeBackup(w io.Writer, r *command.BackupResult) error {
	for _, problem := range r.Problems {
		fmt.Fprintln(w, problem)
	}
	if r.Removed != nil && len(r.Removed.Backups) > 0 {
		fmt.Fprintf(w, "removed by the retention: %s\n", strings.Join(r.Removed.Backups, ", "))
	}
	_, err := fmt.Fprintf(w, "backup %s in %s: %s, %s of it new, in %s\n", r.ID, r.Place, size(r.Size), size(r.Added), r.Ended.Sub(r.Started).Round(time.Millisecond))
	return err
}

func size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return count.Of(n, "byte")
}

type backupListCmd struct {
	place
	JSON bool `name:"json" help:"Report as JSON."`
}

// Run lists the backups, the oldest first.
func (c *backupListCmd) Run(ctx context.Context, s streams) error {
	loaded, at, err := c.open()
	if err != nil {
		return err
	}
	all, err := command.ListBackups(ctx, loaded, at)
	if err != nil {
		return err
	}
	return writeResult(s.out, c.JSON, all, writeBackups)
}

func writeBackups(w io.Writer, all command.Backups) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "there are no backups")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BACKUP\tBEGUN\tSIZE\tNEW\tVERSION\t")
	for _, b := range all {
		if b.Error != "" {
			fmt.Fprintf(t, "%s\t%s\n", b.ID, b.Error)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", b.ID, b.Started.Local().Format(time.DateTime), size(b.Size), size(b.Added), b.Version)
	}
	return t.Flush()
}

type backupVerifyCmd struct {
	place
	Backup string `arg:"" optional:"" help:"Id of the backup; the latest when not given."`
}

// Run reads everything.
func (c *backupVerifyCmd) Run(ctx context.Context, s streams) error {
	loaded, at, err := c.open()
	if err != nil {
		return err
	}
	id, err := command.VerifyBackup(ctx, loaded, at, c.Backup, sometimes(writeBackedUp(s.err)))
	if err == nil {
		_, err = fmt.Fprintf(s.out, "backup %s: every part has its hash\n", id)
	}
	return err
}

type restoreCmd struct {
	place
	Backup string `help:"Id of the backup; the latest when not given." placeholder:"ID"`
	JSON   bool   `name:"json" help:"Report as JSON."`
}

// Run restores a backup and verifies the result; if differences remain the exit code is 1.
func (c *restoreCmd) Run(ctx context.Context, s streams) error {
	loaded, from, err := c.open()
	if err != nil {
		return err
	}
	r, err := command.Restore(ctx, loaded, command.RestoreOptions{From: from, ID: c.Backup, Progress: sometimes(writeBackedUp(s.err))})
	if err != nil {
		return err
	}
	return writeResult(s.out, c.JSON, r, func(w io.Writer, r *command.RestoreReport) error {
		if err := writeReport(w, r.Report); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "backup %s of %s is restored: `belfry serve` continues from there\n", r.ID, r.Started.Local().Format(time.DateTime))
		return err
	})
}
