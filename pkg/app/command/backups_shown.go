package command

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
)

// BackupPages reads the backups of the configured place for the console. A manifest does not change and can be large,
// so each is read once. It is safe for concurrent use.
type BackupPages struct {
	mu    sync.Mutex // held while manifests are read: several pages at once read each once
	known map[string]ListedBackup

	sending sync.Mutex // a download
}

// Latest returns the n latest backups, the latest first, and how many older ones there are. A backup that can't be used
// has an Error.
func (p *BackupPages) Latest(ctx context.Context, c *config.Config, n int) (all Backups, older int, err error) {
	d, closeAt, err := openExisting(ctx, c, nil)
	if errors.Is(err, fs.ErrNotExist) { // the first backup creates the folder
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = closeAt() }()
	ids, err := d.IDs(ctx)
	if err != nil {
		return nil, 0, err
	}
	older = max(0, len(ids)-n)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]ListedBackup{}
	}
	kept := map[string]ListedBackup{}
	for i := len(ids) - 1; i >= older; i-- {
		b, found := p.known[ids[i]]
		if !found {
			if b, err = listed(ctx, d, ids[i]); err != nil {
				return nil, 0, err // what has been read by now stays known
			}
			if b.Error == "" {
				p.known[b.ID] = b
			}
		}
		if all = append(all, b); b.Error == "" {
			kept[b.ID] = b
		}
	}
	p.known = kept
	return all, older, nil
}

// listed reads a backup.
func listed(ctx context.Context, d *backup.Destination, id string) (ListedBackup, error) {
	m, err := d.Manifest(ctx, id)
	switch {
	case errors.Is(err, errs.Internal), errors.Is(err, errs.Invalid):
		return ListedBackup{ID: id, Error: err.Error()}, nil
	case err != nil:
		return ListedBackup{}, err
	}
	return ListedBackup{ID: id, Started: m.Started, Ended: m.Ended, Size: m.Size, Added: m.Added,
		Version: m.Version, Problems: len(m.Problems)}, nil
}

// Download writes a backup of the configured place as a tar archive. begin is called before the first byte, unless
// there is no such backup. Limited while another one is sent.
func (p *BackupPages) Download(ctx context.Context, c *config.Config, id string, begin func(), to io.Writer) error {
	if !p.sending.TryLock() {
		return &errs.Error{Kind: errs.Limited, RetryAfter: time.Minute,
			Message: "this process sends a backup already: wait until that download has ended"}
	}
	defer p.sending.Unlock()
	d, closeAt, err := openExisting(ctx, c, nil)
	if err != nil {
		return err
	}
	defer func() { _ = closeAt() }()
	m, err := d.Manifest(ctx, id)
	if err != nil {
		return err
	}
	begin()
	return backup.WriteTar(ctx, d, m, to)
}
