package app

import (
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
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
	p.reload(a, text)
	if a.console().Operations[0].Path != "verify" || a.offers("backup") {
		t.Error("a backup is offered without a place for it")
	}
}
