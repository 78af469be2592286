package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/config"
	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
	"belfry/test/kit"
)

// An author is deleted, and the books with it, after the backup has read the stores and before it has read the log. The
// restore takes back the deletion, so the event must not delete the books again.
func TestADeletionThatARestoreTakesBackDoesNotCascade(t *testing.T) {
	p := newPlace(t, strings.Replace(books, "restrict: {delete: true}", "restrict: {}", 1))
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.want(a, "POST", "/books", `{"uuid":"solaris","author":"lem","title":"T"}`, http.StatusCreated)
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name, cascade.Name) })
	deleted := false
	_, err := a.wiring.backups.Maker().Make(t.Context(),
		command.BackupOptions{To: p.to(), Progress: func(progress backup.Progress) {
			if deleted || progress.What != "default" {
				return
			}
			deleted = true
			p.want(a, "DELETE", "/authors/lem", "", http.StatusNoContent)
			p.gone(a, "/books/solaris")
		}})
	if err != nil || !deleted {
		t.Fatal(err, deleted)
	}
	p.stop(a)

	again := p.fresh(books)
	again.restore(p)
	a = again.start()
	again.want(a, "POST", "/authors", `{"uuid":"another"}`, http.StatusCreated)
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name, cascade.Name) })
	again.want(a, "GET", "/authors/lem", "", http.StatusOK)
	again.want(a, "GET", "/books/solaris", "", http.StatusOK)
	again.stop(a)
	if n := again.differences(); n > 0 {
		t.Errorf("%d differences", n)
	}
}

// Wherever a restore is interrupted, nothing serves what it has written, and another one starts over.
func TestARestoreThatIsInterruptedAnywhereIsMadeAgain(t *testing.T) {
	p := newPlace(t, backedUp)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.want(a, "POST", "/books", `{"uuid":"solaris","author":"lem","title":"T"}`, http.StatusCreated)
	p.want(a, "PUT", "/binary/upload/Authors/lem/photos/add", "a picture", http.StatusCreated)
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name) })
	p.backup()
	p.stop(a)
	want := p.objects()

	again := p.fresh(backedUp)
	for _, at := range []string{"binaries.files", "default", "EVENTS", "RETRY"} {
		ctx, interrupt := context.WithCancel(t.Context())
		_, err := command.Restore(ctx, again.config,
			command.RestoreOptions{From: p.to(), Progress: func(progress backup.Progress) {
				if progress.What == at {
					interrupt()
				}
			}})
		interrupt()
		if err == nil {
			t.Fatalf("a restore that is interrupted at %s succeeds", at)
		}
		if a, err := Start(t.Context(), again.config, again.log()); err == nil ||
			!strings.Contains(err.Error(), "run `belfry restore` again") {
			t.Fatalf("interrupted at %s, and the start returns %v, %v", at, a, err)
		}
		if _, err := command.Verify.Do(t.Context(), again.config, command.VerifyRequest{}); !errors.Is(err,
			errs.Unavailable) {
			t.Errorf("interrupted at %s, and verify returns %v", at, err)
		}
	}
	again.restore(p)
	if got := again.objects(); !maps.Equal(got, want) {
		t.Errorf("restored: %v\nwant: %v", got, want)
	}
	if _, err := os.Stat(filepath.Join(again.config.Data, hold.RestoreMarker)); err == nil {
		t.Error("the marker is left")
	}
}

func TestARestoreIntoDataIsRefusedAndChangesNothing(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.backup()
	if _, err := command.Restore(t.Context(), p.config, command.RestoreOptions{From: p.to()}); !errors.As(err,
		new(*hold.Held)) {
		t.Errorf("a restore beside a belfry that serves: %v", err)
	}
	p.stop(a)
	want := p.objects()
	if _, err := command.Restore(t.Context(), p.config, command.RestoreOptions{From: p.to()}); !errors.Is(err,
		errs.Invalid) || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a restore into data: %v", err)
	}
	if got := p.objects(); !maps.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
	lacks := p.fresh("stores: {Authors: {}}")
	_, err := command.Restore(t.Context(), lacks.config, command.RestoreOptions{From: p.to()})
	var problems config.Problems
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), "the backup has the store Books") {
		t.Errorf("a configuration without a store: %v", err)
	}
	if _, err := command.Restore(t.Context(), lacks.config,
		command.RestoreOptions{From: &config.BackupPlace{Folder: p.path("nothing")}}); !errors.Is(err, errs.Invalid) {
		t.Errorf("no backups: %v", err)
	}
}

// A backup is made while somebody registers consumers and the log has events that nobody has handled: they are
// delivered.
func TestListenersContinueAfterARestore(t *testing.T) {
	p := newPlace(t, books)
	a := p.startFront() // without workers
	for i := range 5 {
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","author":"lem","title":"T"}`, i), http.StatusCreated)
	}
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.backup()
	p.stop(a)
	p.fresh(books).correctsOneTarget(p)
}

func TestTheScheduleMakesOneBackup(t *testing.T) {
	text := books + "metrics: {listen: 127.0.0.1:0}\nbackup: {folder: backups, schedule: 0 0 1 1 *, keep: {last: 1}}\n"
	p := newPlace(t, text)
	a := p.start()
	kit.WaitFor(t, "a backup", func() bool { return strings.Contains(p.logged.String(), "a backup was made") })
	kit.WaitFor(t, "its metric", func() bool {
		text := p.metrics(a)
		return strings.Contains(text, "belfry_backup_failed 0\n") &&
			!strings.Contains(text, "belfry_backup_last_success_timestamp_seconds 0\n")
	})
	p.stop(a)
	a = p.start()
	kit.WaitFor(t, "the state", func() bool { return a.wiring.backups.Last.Load() != nil })
	p.stop(a)
	all, err := command.ListBackups(t.Context(), p.config, nil)
	if err != nil || len(all) != 1 || !all.Clean() {
		t.Errorf("there are %v, %v", all, err)
	}
}

// The destination is a file, so no backup can be made.
func TestABackupThatFailsIsShown(t *testing.T) {
	p := newPlace(t, books+"metrics: {listen: 127.0.0.1:0}\nbackup: {folder: belfry.yaml, schedule: 1h}\n")
	a := p.start()
	kit.WaitFor(t, "the metric", func() bool { return strings.Contains(p.metrics(a), "belfry_backup_failed 1\n") })
	if status, text := p.do(a, "GET", "/readyz", ""); status != http.StatusOK ||
		!strings.Contains(text, "the latest backup has failed") {
		t.Errorf("%d %s", status, text)
	}
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
}
