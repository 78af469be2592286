package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
	"belfry/pkg/store"
)

// dataCommands are the commands that need the data of a belfry, by what the lock file calls them while they hold it.
var dataCommands = map[string]func(context.Context, *config.Config) error{
	"verify": func(ctx context.Context, c *config.Config) error {
		_, err := command.Verify.Do(ctx, c, command.VerifyRequest{})
		return err
	},
	"export": func(ctx context.Context, c *config.Config) error {
		_, err := command.Export.Do(ctx, c, command.ExportRequest{Store: "Books", To: io.Discard})
		return err
	},
	"import": func(ctx context.Context, c *config.Config) error {
		_, err := command.Import.Do(ctx, c, command.ImportRequest{Store: "Books", From: strings.NewReader("")})
		return err
	},
	"backup": func(ctx context.Context, c *config.Config) error {
		_, err := command.Backup.Do(ctx, c,
			command.BackupRequest{To: &config.BackupPlace{Folder: filepath.Join(c.Data, "..", "backups")}})
		return err
	},
	"access check": func(ctx context.Context, c *config.Config) error {
		_, err := command.Access.Do(ctx, c, command.Question{Operation: "get", Store: "Books", UUID: "b"})
		return err
	},
	"schema check": func(ctx context.Context, c *config.Config) error {
		_, err := command.Schema.Do(ctx, c, command.SchemaQuestion{Store: "Books", Name: "any", Schema: []byte("{}")})
		return err
	},
	"keys": func(ctx context.Context, c *config.Config) error {
		_, err := command.Keys.Do(ctx, c, command.KeysRequest{})
		return err
	},
	"user": func(ctx context.Context, c *config.Config) error {
		_, err := command.Users.Do(ctx, c, command.UserRequest{Act: command.ListUsers})
		return err
	},
	"migrate": func(ctx context.Context, c *config.Config) error {
		_, err := command.Migrate(ctx, c, c, nil)
		return err
	},
}

// A folder whose restore was interrupted before it had made anything has no data either. Each command says which of the
// two it is, and each one that finds data finds out whether that is all of a backup.
func TestNoCommandTakesAPartOfABackupForData(t *testing.T) {
	write := func(p *place) {
		if err := os.MkdirAll(p.config.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := hold.WriteDurably(p.config.Data, hold.RestoreMarker,
			[]byte(`{"backup":"20260101T000000.000Z-00000000"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		make func(*place)
		kind errs.Kind
		says string
	}{
		"no folder": {func(*place) {}, errs.Invalid, "has no data yet"},
		"before it": {write,
			errs.Unavailable, "has a part of the backup 20260101T000000.000Z-00000000, whose restore was " +
				"interrupted: run `belfry restore` again"},
		"in the midst": {func(p *place) { p.stop(p.start()); write(p) },
			errs.Unavailable, "has a part of the backup 20260101T000000.000Z-00000000, whose restore was interrupted: run `belfry restore` again"},
		"while it runs": {func(p *place) {
			write(p)
			lock, err := hold.LockFolder(p.config.Data, "restore")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(lock.Unlock)
		}, errs.Unavailable, "is in use by belfry restore, process "},
		"with another data folder": {func(p *place) {
			p.stop(p.start())
			err := p.withStores(func(set *store.Set) error {
				return open.BackupStates(set).Change(t.Context(),
					func(s *backup.State) error { s.Restoring = "20260101T000000.000Z-00000000"; return nil })
			})
			if err != nil {
				t.Fatal(err)
			}
		}, errs.Unavailable, "the stores have a part of the backup 20260101T000000.000Z-00000000, whose restore was " +
			"interrupted: run `belfry restore` again"},
	} {
		p := newPlace(t, books)
		c.make(p)
		for command, run := range dataCommands {
			if command == "migrate" && name == "with another data folder" {
				continue // which opens only what moves: see the test below
			}
			if err := run(t.Context(), p.config); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %s: %v", name, command, err)
			}
		}
	}
}

func TestAPartOfABackupDoesNotMove(t *testing.T) {
	p := newPlace(t, books)
	p.stop(p.start())
	err := p.withStores(func(set *store.Set) error {
		return open.BackupStates(set).Change(t.Context(),
			func(s *backup.State) error { s.Restoring = "20260101T000000.000Z-00000000"; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	to := newPlace(t, books)
	if _, err := command.Migrate(t.Context(), p.config, to.config, nil); !errors.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "whose restore was interrupted") {
		t.Errorf("the move of a part of a backup: %v", err)
	}
}
