package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/app/hold"
)

const (
	deniedNow = "a policy denies operations that it does not name"
	ownedNow  = "only owners have access"
)

// partly has policies that do not name everything, in each way in which an operation is reached, and in none.
const partly = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {list: true}, policy: {create: "true"}}
  Listed: {expose: {list: true}, policy: {list: "true", update: "true"}}
  Fixed: {expose: {restrict: {update: true, delete: true}}, policy: {create: "true", get: "true"}}
  Papers: {policy: {create: "true"}}
  Inside: {}
  Open: {expose: {}}
  Chosen: {expose: {}, policy: {default: allow}}
  Own: {expose: {}, policy: owner}
  Owned: {expose: {}, owner: by}
  Users: {policy: {get: "true", update: "true"}}
binaries: {b: {map: {Papers: [files], Users: [photo]}}}
`

var wantTold = []string{
	`store=Books key=stores.Books.policy denied="get, list, update, delete"`,
	`store=Listed key=stores.Listed.policy denied="create, get, delete"`,
	`store=Papers key=stores.Papers.policy denied="get, update"`,
	`store=Users key=stores.Users.policy denied=delete`,
	`store=Owned key=stores.Owned.policy`,
}

// told returns the lines of the log about what is denied now.
func (p *place) toldLines() (all []string) {
	for line := range strings.Lines(p.logged.String()) {
		if strings.Contains(line, deniedNow) || strings.Contains(line, ownedNow) {
			all = append(all, line)
		}
	}
	return all
}

// age has a data folder be one that an earlier release has used: it has left no word about what was told.
func (p *place) age() {
	p.Helper()
	if err := os.Remove(filepath.Join(p.config.Data, hold.ReportedFile)); err != nil {
		p.Fatal(err)
	}
}

// The first start on a folder of an earlier release names what it denies now, and no other one does.
func TestTheFirstStartAfterAnUpgradeNamesWhatIsDenied(t *testing.T) {
	p := newPlace(t, partly)
	p.stop(p.start())
	if lines := p.toldLines(); len(lines) > 0 {
		t.Errorf("a new folder: %q", lines)
	}
	p.age()
	p.stop(p.start())
	lines := p.toldLines()
	if text := strings.Join(lines, ""); len(lines) != len(wantTold) {
		t.Errorf("%d warnings:\n%s", len(lines), text)
	}
	for _, want := range wantTold {
		if !strings.Contains(strings.Join(lines, ""), want) {
			t.Errorf("no %s in\n%s", want, strings.Join(lines, ""))
		}
	}
	p.stop(p.start())
	if again := p.toldLines(); len(again) != len(lines) {
		t.Errorf("told again: %q", again)
	}
}

// A reload tells nothing: what it denies is what was written.
func TestAReloadTellsNothingOfAnUpgrade(t *testing.T) {
	p := newPlace(t, "listen: 127.0.0.1:0\nbus: {listen: \"\"}\nstores:\n  Books: {expose: {}}\n")
	p.stop(p.start())
	p.age()
	a, _ := p.reloadable()
	p.reload(a, "listen: 127.0.0.1:0\nbus: {listen: \"\"}\nstores:\n  Books: {expose: {}, policy: {create: "+
		"\"true\"}}\n")
	p.stop(a)
	p.stop(p.start())
	if lines := p.toldLines(); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
}

// Whichever part of a folder is there, an earlier release may have used it; one that a command of this release was the
// first to use is new.
func TestFoldersOfAnEarlierReleaseAreKnown(t *testing.T) {
	for name, made := range map[string]string{"the lock": hold.LockFile, "the stores": "stores/", "the log": "bus/",
		"a folder of something else": "other/", "nothing": ""} {
		p := newPlace(t, partly)
		if err := os.MkdirAll(p.config.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		if path := filepath.Join(p.config.Data, made); strings.HasSuffix(made, "/") {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if made != "" {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time it is this release that has left the lock
			lock, err := hold.LockData(p.config.Data, "user")
			if err != nil {
				t.Fatal(err)
			}
			lock.Unlock()
		}
		p.stop(p.start())
		if got, want := len(p.toldLines()) > 0,
			made == hold.LockFile || made == "stores/" || made == "bus/"; got != want {
			t.Errorf("%s: told: %t", name, got)
		}
	}
}

// What the file has is not trusted: it is told again rather than not at all.
func TestAFileThatCannotBeReadHasToldNothing(t *testing.T) {
	for _, content := range []string{"", "{", "[]", `{"told":["something else"]}`, `{"told":null}`} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, hold.ReportedFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if hold.WasReported(folder, hold.DeniedByDefault) {
			t.Errorf("%q", content)
		}
		if err := hold.SetReported(folder); err != nil || !hold.WasReported(folder, hold.DeniedByDefault) {
			t.Errorf("%q is not replaced: %v", content, err)
		}
	}
}
