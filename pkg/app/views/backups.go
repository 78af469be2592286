package views

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"belfry/pkg/api/console"
	"belfry/pkg/app/serving"
	"belfry/pkg/operations/backup"
)

// backupPlace returns the place of backups for the console; nil if none is configured.
func (v *Views) backupPlace(g *serving.Generation) *console.BackupPlace {
	c := g.Config
	if c.Backup == nil {
		return nil
	}
	return &console.BackupPlace{
		Name: c.Backup.String(), Folder: backup.FolderOf, Restore: restoreOf(g),
		Latest: func(ctx context.Context, n int) ([]console.BackupRow, int, error) {
			found, older, err := v.measured.backups.Latest(ctx, c, n)
			rows := make([]console.BackupRow, 0, len(found))
			for _, b := range found {
				rows = append(rows, console.BackupRow{ID: b.ID, Version: b.Version, Began: b.Started,
					Took: b.Ended.Sub(b.Started), Size: b.Size, Added: b.Added, Problems: b.Problems, Error: b.Error})
			}
			return rows, older, err
		},
		Download: func(ctx context.Context, id string, begin func(), to io.Writer) error {
			return v.measured.backups.Download(ctx, c, id, begin, to)
		},
	}
}

// restoreOf returns what a restore on this machine needs to know.
func restoreOf(g *serving.Generation) console.Restore {
	c := g.Config
	program, err := os.Executable()
	if err != nil {
		program = "belfry"
	}
	r := console.Restore{Program: word(program), Config: word(absolute(c.File())), Data: word(absolute(c.Data)),
		Bus: len(c.Bus.URL) > 0}
	aside := func(folder string) {
		if outside(c.Data, folder) {
			r.Folders = append(r.Folders, word(absolute(folder)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Backends)) {
		if f := c.Backends[name].File; f != nil {
			aside(f.Folder)
		} else {
			r.Databases = append(r.Databases, name)
		}
	}
	return r
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// plainWord matches texts that a shell takes as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// word returns a text as a word of a shell.
func word(text string) string {
	if plainWord.MatchString(text) && !strings.HasPrefix(text, "-") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
