package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
)

// placeFlag is the flag of the place of backups.
type placeFlag struct {
	Place string `name:"place" help:"The place of the backups, instead of the configured one." placeholder:"FOLDER|s3://BUCKET/PREFIX"`
}

// parse returns the place of the flag, nil without one.
func (p *placeFlag) parse() (*config.BackupPlace, error) {
	if p.Place == "" {
		return nil, nil
	}
	parsed, err := config.ParseBackupPlace(p.Place)
	if err != nil {
		return nil, errs.New(errs.Invalid, "--place: %v", err)
	}
	return parsed, nil
}

// showBackup shows the progress of reading or writing a backup.
func showBackup(s Streams) (func(backup.Progress), func(error)) {
	return Sometimes(func(p backup.Progress) { fmt.Fprintf(s.Err, "%s: %d\n", p.What, p.Done) }), func(error) {}
}

type backupFlags struct {
	placeFlag
	reportFlag
}

// Request implements Flags.
func (f *backupFlags) Request(context.Context, Streams) (q BackupRequest, err error) {
	q.To, err = f.parse()
	return q, err
}

// Print implements Flags.
func (f *backupFlags) Print(s Streams, r *BackupResult) error {
	return WriteReport(s.Out, f.JSON, r, writeBackup)
}

func writeBackup(w io.Writer, r *BackupResult) error {
	for _, problem := range r.Problems {
		fmt.Fprintln(w, problem)
	}
	if r.Removed != nil && len(r.Removed.Backups) > 0 {
		fmt.Fprintf(w, "removed by the retention: %s\n", strings.Join(r.Removed.Backups, ", "))
	}
	_, err := fmt.Fprintf(w, "backup %s in %s: %s, %s of it new, in %s\n", r.ID, r.Place, count.Bytes(r.Size),
		count.Bytes(r.Added), r.Ended.Sub(r.Started).Round(time.Millisecond))
	return err
}

// BackupPart is a request about the backups of a place.
type BackupPart struct {
	At *config.BackupPlace `json:"at,omitempty"`                          // nil: the configured one
	ID string              `json:"id,omitempty" label:"Backup" max:"100"` // of a backup; "": the latest
}

// BackupID is the id, for the console.
func (p BackupPart) BackupID() string { return p.ID }

// BackupList lists the backups in a place.
var BackupList = Operation[BackupPart, Backups, none]{
	Name: "backup list", Own: true,
	Run: func(ctx context.Context, at *Place, q BackupPart, _ func(none)) (*Backups, error) {
		all, err := ListBackups(ctx, at.Plan.Config, q.At)
		return &all, err
	},
	Commands: []Command[BackupPart, Backups]{{Words: "backup list", Help: "List the backups of a destination.",
		Flags: &backupListFlags{}}},
}

type backupListFlags struct {
	placeFlag
	reportFlag
}

// Request implements Flags.
func (f *backupListFlags) Request(context.Context, Streams) (q BackupPart, err error) {
	q.At, err = f.parse()
	return q, err
}

// Print implements Flags.
func (f *backupListFlags) Print(s Streams, all *Backups) error {
	return WriteReport(s.Out, f.JSON, all, writeBackups)
}

func writeBackups(w io.Writer, all *Backups) error {
	if len(*all) == 0 {
		_, err := fmt.Fprintln(w, "there are no backups")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BACKUP\tBEGUN\tSIZE\tNEW\tVERSION\t")
	for _, b := range *all {
		if b.Error != "" {
			fmt.Fprintf(t, "%s\t%s\n", b.ID, b.Error)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", b.ID, b.Started.Local().Format(time.DateTime), count.Bytes(b.Size),
			count.Bytes(b.Added), b.Version)
	}
	return t.Flush()
}

// BackupVerify reads a backup, and returns its id.
var BackupVerify = Operation[BackupPart, string, backup.Progress]{
	Name: "backup verify", Own: true,
	Run: func(ctx context.Context, at *Place, q BackupPart, report func(backup.Progress)) (*string, error) {
		id, err := VerifyBackup(ctx, at.Plan.Config, q.At, q.ID, report)
		return &id, err
	},
	Show: func(s Streams, _ BackupPart) (func(backup.Progress), func(error)) { return showBackup(s) },
	Commands: []Command[BackupPart, string]{{
		Words: "backup verify", Help: "Read a backup and compare each part with its hash.", Flags: &backupVerifyFlags{},
	}},
	Reads: func(BackupPart) bool { return true },
	Console: &Console[BackupPart, string]{
		Path: console.BackupVerifyPath, Kind: "verification of a backup", Button: "Verify",
		Offered: func(c *config.Config) bool { return c.Backup != nil },
	},
}

type backupVerifyFlags struct {
	placeFlag
	Backup string `arg:"" optional:"" help:"Id of the backup; the latest when not given."`
}

// Request implements Flags.
func (f *backupVerifyFlags) Request(context.Context, Streams) (q BackupPart, err error) {
	q.ID = f.Backup
	q.At, err = f.parse()
	return q, err
}

// Print implements Flags.
func (f *backupVerifyFlags) Print(s Streams, id *string) error {
	_, err := fmt.Fprintf(s.Out, "backup %s: every part has its hash\n", *id)
	return err
}

// RestoreBackup is Restore.
var RestoreBackup = Operation[BackupPart, RestoreReport, backup.Progress]{
	Name: "restore", Own: true,
	Run: func(ctx context.Context, at *Place, q BackupPart, report func(backup.Progress)) (*RestoreReport, error) {
		return Restore(ctx, at.Plan.Config, RestoreOptions{From: q.At, ID: q.ID, Progress: report})
	},
	Show: func(s Streams, _ BackupPart) (func(backup.Progress), func(error)) { return showBackup(s) },
	Commands: []Command[BackupPart, RestoreReport]{{Words: "restore", Help: "Restore a backup into empty data.",
		Flags: &restoreFlags{}}},
}

type restoreFlags struct {
	placeFlag
	Backup string `help:"Id of the backup; the latest when not given." placeholder:"ID"`
	reportFlag
}

// Request implements Flags.
func (f *restoreFlags) Request(context.Context, Streams) (q BackupPart, err error) {
	q.ID = f.Backup
	q.At, err = f.parse()
	return q, err
}

// Print implements Flags.
func (f *restoreFlags) Print(s Streams, r *RestoreReport) error {
	return WriteReport(s.Out, f.JSON, r, func(w io.Writer, r *RestoreReport) error {
		if err := r.Report.WriteText(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "backup %s of %s is restored: `belfry serve` continues from there\n", r.ID,
			r.Started.Local().Format(time.DateTime))
		return err
	})
}
