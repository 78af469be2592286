package mail_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"belfry/pkg/errs"
	belfry "belfry/pkg/mail"
)

func TestAFolderContainsTheMail(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data", "mails")
	m := letter()
	got, file := written(t, folder, m)
	same(t, got, m)
	if want := regexp.MustCompile(`^20260329T103456\.000000000Z-` + m.ID + `\.eml$`); !want.MatchString(
		filepath.Base(file)) {
		t.Errorf("it is in %s", file)
	}
	for path, want := range map[string]os.FileMode{folder: 0o700, file: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestNamesSortByDate(t *testing.T) {
	folder := t.TempDir()
	var files []string
	for i, id := range []string{"c", "b", "a"} {
		m := letter()
		m.ID, m.Date = id, m.Date.Add(time.Duration(i)*time.Microsecond)
		_, file := written(t, folder, m)
		files = append(files, file)
	}
	if !slices.IsSorted(files) {
		t.Errorf("%q", files)
	}
}

func TestConcurrentMails(t *testing.T) {
	folder := t.TempDir()
	sender := belfry.NewFolder(folder, nil)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			m := letter()
			m.ID = string(rune('a' + i%20)) // each twice
			if err := sender.Send(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 20 {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if got := parsed(t, filepath.Join(folder, e.Name())); got.Text != letter().Text {
			t.Errorf("%s has %q", e.Name(), got.Text)
		}
	}
}

func TestAnInvalidFolderIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, belfry.NewFolder(file, nil).Send(t.Context(), letter()), errs.Unavailable, file)

	// A file name that is taken by a folder leaves no temporary file.
	folder := t.TempDir()
	_, taken := written(t, folder, letter())
	if err := os.Remove(taken); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	wantError(t,
		belfry.NewFolder(folder, func(_, _ string) { t.Error("it reported a file") }).Send(t.Context(), letter()),
		errs.Unavailable, folder)
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
