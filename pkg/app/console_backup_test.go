package app

import (
	"bytes"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

// Admins back up into the configured place, and choose no other.
func TestABackupIsMadeInTheConsole(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores: {Books: {expose: {}}}
`
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.config = p.load(text + "backup: {folder: backups}\n")
	a, _ := p.reloadable()
	o := a.operation("backup")
	if fields := o.Fields(); len(fields) > 0 {
		t.Errorf("a form has %+v", fields)
	}
	if rows, _, err := a.console().Backups.Latest(t.Context(), 5); err != nil || len(rows) > 0 {
		t.Errorf("before the first backup: %+v, %v", rows, err)
	}
	if err := o.Runs.Start(t.Context(), "ada", "r", nil); err != nil {
		t.Fatal(err)
	}
	var run *console.Run
	kit.WaitFor(t, "the end of the run", func() bool {
		var err error
		if run, err = o.Runs.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !run.Running()
	})
	if made, ok := run.Out.(*command.BackupResult); run.Err != nil || !ok || made.ID == "" || !made.Clean() {
		t.Fatalf("%+v", run)
	}
	place := a.console().Backups
	rows, older, err := place.Latest(t.Context(), 5)
	if err != nil || older != 0 || len(rows) != 1 || rows[0].ID == "" || rows[0].Size == 0 || rows[0].Error != "" {
		t.Fatalf("%+v, %d older, %v", rows, older, err)
	}
	p.downloads(place, rows[0].ID)
	verified := a.operation("backup/verify")
	if err := verified.Runs.Start(t.Context(), "ada", "r", url.Values{"id": {rows[0].ID}}); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the end of the verification", func() bool {
		if run, err = verified.Runs.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !run.Running()
	})
	if id, ok := run.Out.(*string); run.Err != nil || !ok || *id != rows[0].ID {
		t.Errorf("%+v", run)
	}
	if r := place.Restore; r.Config != filepath.Join(p.folder, "belfry.yaml") || r.Data != p.config.Data || r.Bus ||
		len(r.Databases)+len(r.Folders) != 0 {
		t.Errorf("%+v", r)
	}

	p.reload(a, text)
	if a.console().Operations[0].Path != "verify" || a.offers("backup") || a.console().Backups != nil {
		t.Error("a backup is offered without a place for it")
	}
}

// downloads checks that a backup is sent once at a time.
func (p *place) downloads(from *console.BackupPlace, id string) {
	p.Helper()
	var archive, other bytes.Buffer
	begun := 0
	err := from.Download(p.Context(), id, func() {
		begun++
		if err := from.Download(p.Context(), id, func() { begun++ }, &other); !errors.Is(err, errs.Limited) {
			p.Errorf("a second download: %v", err)
		}
	}, &archive)
	if err != nil || begun != 1 || !strings.HasPrefix(archive.String(), from.Folder(id)) || other.Len() > 0 {
		p.Errorf("%v, begun %d times, %d bytes", err, begun, archive.Len())
	}
	for _, wrong := range []string{"", "../" + id, strings.Replace(id, "Z-", "Z-f", 1)} {
		if err := from.Download(p.Context(), wrong, func() { begun++ }, &other); !errors.Is(err, errs.Invalid) &&
			!errors.Is(err, errs.NotFound) || begun > 1 {
			p.Errorf("%q: %v", wrong, err)
		}
	}
}
