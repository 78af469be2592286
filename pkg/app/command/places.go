package command

import (
	"context"
	"os"
	"time"

	"belfry/config"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
)

// backupPlace returns the place of backups. It must not be a place of files, which the retention would remove.
func backupPlace(c *config.Config, given *config.BackupPlace) (*config.BackupPlace, error) {
	switch {
	case given != nil:
		if given.S3 != nil {
			given.S3.CA = c.CA
		}
		return given, plan.CheckPlace(c, given)
	case c.Backup != nil:
		return &c.Backup.BackupPlace, plan.CheckPlace(c, &c.Backup.BackupPlace)
	default:
		return nil, errs.New(errs.Invalid, "no place for backups is configured: set backup in the configuration, or "+
			"name a folder or s3://bucket/prefix")
	}
}

// NewBackupPlace is backupPlace for a new backup: the place must also not be served, or be below a folder that belfry
// writes.
func NewBackupPlace(c *config.Config, given *config.BackupPlace) (*config.BackupPlace, error) {
	place, err := backupPlace(c, given)
	if err != nil {
		return nil, err
	}
	return place, plan.CheckNewBackups(c, place)
}

// openDestination opens a destination.
func openDestination(ctx context.Context, place *config.BackupPlace) (*backup.Destination, func() error, error) {
	opened, err := open.Storage(ctx, &config.Binary{S3: place.S3, File: &config.FileStorage{Folder: place.Folder}})
	if err != nil {
		return nil, nil, errs.Wrap(err, errs.KindOf(err), "the destination of backups, %s", place)
	}
	s, ok := opened.(backup.Storage)
	if !ok {
		return nil, nil, errs.New(errs.Internal, "%s can't hold backups", place)
	}
	return backup.NewDestination(s, place.String()), opened.Close, nil
}

// ListedBackup is one backup of a destination.
type ListedBackup struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Size    int64     `json:"size,omitempty"`
	Added   int64     `json:"added,omitempty"`
	Version string    `json:"version,omitempty"`
	Error   string    `json:"error,omitempty"` // why it can't be used

	Problems int `json:"-"` // parts of the data that it lacks
}

// Backups are the backups of a destination, the oldest first.
type Backups []ListedBackup

// Clean reports whether all can be used.
func (all Backups) Clean() bool {
	for _, b := range all {
		if b.Error != "" {
			return false
		}
	}
	return true
}

// ListBackups lists the backups in a place, nil for the configured one.
func ListBackups(ctx context.Context, c *config.Config, at *config.BackupPlace) (Backups, error) {
	d, closeAt, err := openExisting(ctx, c, at)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeAt() }()
	ids, err := d.IDs(ctx)
	if err != nil {
		return nil, err
	}
	all := Backups{}
	for _, id := range ids {
		b, err := listed(ctx, d, id)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// VerifyBackup reads all parts of a backup, "" for the latest, and returns its id.
func VerifyBackup(ctx context.Context, c *config.Config, at *config.BackupPlace, id string,
	progress func(backup.Progress)) (string, error) {
	d, closeAt, err := openExisting(ctx, c, at)
	if err != nil {
		return "", err
	}
	defer func() { _ = closeAt() }()
	if id == "" {
		if id, err = d.Latest(ctx); err != nil {
			return "", err
		}
	}
	m, err := d.Manifest(ctx, id)
	if err != nil {
		return "", err
	}
	return id, backup.Verify(ctx, d, m, progress)
}

// openExisting opens a destination that must exist.
func openExisting(ctx context.Context, c *config.Config,
	at *config.BackupPlace) (*backup.Destination, func() error, error) {
	place, err := backupPlace(c, at)
	if err != nil {
		return nil, nil, err
	}
	if place.S3 != nil {
		return openDestination(ctx, place)
	}
	if _, err := os.Stat(place.Folder); err != nil {
		return nil, nil, errs.Wrap(err, errs.Invalid, "there are no backups in %s", place)
	}
	opened, err := filestorage.OpenExisting(place.Folder)
	if err != nil {
		return nil, nil, errs.Wrap(err, errs.KindOf(err), "the destination of backups, %s", place)
	}
	return backup.NewDestination(opened, place.String()), opened.Close, nil
}
