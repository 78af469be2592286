package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"belfry/config"
	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/test/kit"
)

const backedUp = books + `
binaries:
  files: {map: {Authors: [photos]}}
`

// fresh is another place with the same configuration.
func (p *place) fresh(text string) *place {
	return newPlace(p.T, text)
}

// to is where the backups of a place are.
func (p *place) to() *config.BackupPlace { return &config.BackupPlace{Folder: p.path("backups")} }

func (p *place) backup() *command.BackupResult {
	p.Helper()
	r, err := command.Backup.Do(p.Context(), p.config, command.BackupRequest{To: p.to()})
	if err != nil || !r.Clean() {
		p.Fatalf("backup: %v, %+v", err, r)
	}
	return r
}

func (p *place) restore(from *place) *command.RestoreReport {
	p.Helper()
	r, err := command.Restore(p.Context(), p.config, command.RestoreOptions{From: from.to()})
	if err != nil {
		p.Fatal(err)
	}
	if !r.Clean() {
		p.Fatalf("after the restore: %+v", r.Report)
	}
	return r
}

// correctsOneTarget restores a backup, which corrects one array, and has the workers handle what they had not.
func (p *place) correctsOneTarget(from *place) {
	p.Helper()
	if r := p.restore(from); r.Report.Repaired != 1 {
		p.Errorf("%d targets were corrected", r.Report.Repaired)
	}
	a := p.start()
	kit.WaitUntil(p, func() error { return positioned(a, mapping.Name, cascade.Name) })
	p.stop(a)
	if n := p.differences(); n > 0 {
		p.Errorf("%d differences", n)
	}
}

// objects returns the bodies of all objects of a stopped belfry, by store and uuid.
func (p *place) objects() map[string]string {
	p.Helper()
	all := map[string]string{}
	err := p.withStores(func(set *store.Set) error {
		for name, s := range set.Stores() {
			for o, err := range s.All(p.Context(), 100) {
				if err != nil {
					return err
				}
				if name != config.PositionStore && name != config.SealKeyStore { // which a restore renews
					all[name+" "+o.UUID] = string(o.Body)
				}
			}
		}
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// writing creates books until stop is called, and returns those that were acknowledged.
func (p *place) writing(a *App) (acknowledged func() []string, stop func()) {
	return kit.Writing(4, func(client, n int) (string, bool) {
		uuid := fmt.Sprintf("b%d-%d", client, n)
		status, text := p.do(a, "POST", "/books", fmt.Sprintf(`{"uuid":%q,"author":"lem","title":"T"}`, uuid))
		if status != http.StatusCreated {
			p.Errorf("%d %s", status, text)
		}
		return uuid, status == http.StatusCreated
	})
}

func TestABackupIsRestoredWithAllObjectsFilesAndPositions(t *testing.T) {
	p := newPlace(t, backedUp)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	for i := range 20 {
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","author":"lem","title":"T%d"}`, i, i),
			http.StatusCreated)
	}
	p.want(a, "PUT", "/binary/upload/Authors/lem/photos/add", "a picture", http.StatusCreated)
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name) })
	p.backup()
	p.stop(a)
	want := p.objects()

	again := p.fresh(backedUp)
	again.restore(p)
	if got := again.objects(); !maps.Equal(got, want) {
		t.Errorf("restored: %v\nwant: %v", got, want)
	}
	a = again.start()
	if _, text := again.do(a, "GET", "/binary/Authors/lem/photos/0", ""); text != "a picture" {
		t.Errorf("the file is %q", text)
	}
	if s := a.wiring.missed.Missed(); len(s) > 0 {
		t.Errorf("missed after the restore: %+v", s)
	}
	again.stop(a)
}

// Under load a backup has each write that was acknowledged before it began, and what it has fits together.
func TestABackupUnderLoadIsOneMoment(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	acknowledged, stop := p.writing(a)
	kit.WaitFor(t, "a hundred writes", func() bool { return len(acknowledged()) > 100 })
	before := acknowledged()
	p.backup()
	stop()
	p.stop(a)

	again := p.fresh(books)
	again.restore(p)
	objects := again.objects()
	books := 0
	for name := range objects {
		if strings.HasPrefix(name, "Books ") {
			books++
		}
	}
	for _, uuid := range before {
		if objects["Books "+uuid] == "" {
			t.Errorf("the backup lacks %s, which was acknowledged before", uuid)
		}
	}
	var lem struct{ Books []any }
	if err := json.Unmarshal([]byte(objects["Authors lem"]), &lem); err != nil || len(lem.Books) != books {
		t.Errorf("the author has %d of %d books, %v", len(lem.Books), books, err)
	}
	a = again.start()
	again.want(a, "POST", "/books", `{"uuid":"new","author":"lem","title":"T"}`, http.StatusCreated)
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name) })
	again.stop(a)
	if n := again.differences(); n > 0 {
		t.Errorf("%d differences", n)
	}
}

func TestABackupWhereFilesAreIsRefused(t *testing.T) {
	p := newPlace(t, backedUp)
	files, link := p.config.Binaries["files"].File.Folder, p.path("link")
	if err := errors.Join(os.MkdirAll(files, 0o700), os.Symlink(files, link)); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{files, link} {
		_, err := command.Backup.Do(t.Context(), p.config,
			command.BackupRequest{To: &config.BackupPlace{Folder: folder}})
		if !errors.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), "is the place of the files of binaries.files") {
			t.Errorf("a backup into the folder of files, %s: %v", folder, err)
		}
	}
}
