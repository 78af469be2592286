package command

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/backup"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// BackupOptions are the options of Backup.
type BackupOptions struct {
	To       *config.BackupPlace // nil: the configured one
	Progress func(backup.Progress)
}

// BackupResult is what a backup has made.
type BackupResult struct {
	ID       string         `json:"id"`
	Place    string         `json:"place"`
	Started  time.Time      `json:"started"`
	Ended    time.Time      `json:"ended"`
	Size     int64          `json:"size"`
	Added    int64          `json:"added"`
	Problems []string       `json:"problems"`
	Removed  *backup.Pruned `json:"removed,omitempty"` // nil: there is no retention for this place
}

// Clean reports whether the backup has everything.
func (r *BackupResult) Clean() bool { return len(r.Problems) == 0 }

// Backup makes a backup: by the belfry that serves the data if one does, and directly otherwise. Then it gives way to a belfry
// that waits for the data.
func Backup(ctx context.Context, c *config.Config, o BackupOptions) (result *BackupResult, err error) {
	if _, err := NewBackupPlace(c, o.To); err != nil {
		return nil, err
	}
	err = open.WithStores(ctx, c, "backup",
		func(p *plan.Plan, set *store.Set) error {
			giving, done := hold.GivingWay(ctx, p.Config.Data)
			defer done()
			err := open.WithRest(giving, p, func(b *bus.Bus, storages map[string]storage.Storage) (err error) {
				m := &Maker{Plan: p, Set: set, Bus: b, Storages: storages, Backends: p.Opened, Log: slog.New(slog.DiscardHandler), Holder: NewHolder(p.Config, object.NewUUID())}
				result, err = m.Make(giving, o)
				return err
			})
			if err != nil && errors.Is(context.Cause(giving), hold.ErrGaveWay) {
				return hold.ErrGaveWay
			}
			return err
		},
		func(h hold.Holder) (err error) {
			result, err = backupServed(ctx, h, o)
			return err
		})
	return result, err
}

// Maker makes the backups of a process.
type Maker struct {
	Plan     *plan.Plan
	Set      *store.Set
	Bus      *bus.Bus
	Storages map[string]storage.Storage
	Backends map[string]driver.Backend
	Log      *slog.Logger
	Holder   backup.Holder
}

// NewHolder returns who makes a backup: a run of belfry that has the data folder.
func NewHolder(c *config.Config, run string) backup.Holder {
	host, _ := os.Hostname()
	return backup.Holder{ID: object.NewUUID(), Run: run, Host: host, Data: c.Data}
}

// States is the state that all processes share.
func (m *Maker) States() *backup.States { return open.BackupStates(m.Set) }

// Make makes a backup that somebody has requested.
func (m *Maker) Make(ctx context.Context, o BackupOptions) (*BackupResult, error) {
	state, _, err := m.States().Take(ctx, m.Holder, nil)
	if err != nil {
		return nil, err
	}
	return m.MakeTaken(ctx, state.Installation, o)
}

// leaseInterval is how often a lease is renewed.
const leaseInterval = backup.LeaseTime / 5

// MakeTaken makes a backup while this process has the lease, and ends the lease.
func (m *Maker) MakeTaken(ctx context.Context, installation string, o BackupOptions) (*BackupResult, error) {
	making, stopRenewing := store.KeepLease(ctx, leaseInterval, func(ctx context.Context) error { return m.States().Renew(ctx, m.Holder.ID) })
	result, manifest, err := m.makeAt(making, installation, o)
	if lost := context.Cause(making); err != nil && lost != nil && ctx.Err() == nil {
		err = lost
	}
	stopRenewing()
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), open.UnavailableStopTimeout)
	defer stop()
	ended := m.States().End(ending, m.Holder.ID, backup.Result{
		Manifest: manifest, Err: err, Interrupted: err != nil && ctx.Err() != nil, Elsewhere: m.elsewhere(o.To),
	})
	if err == nil && ended != nil {
		m.Log.Warn("that a backup has ended can't be stored", "error", ended)
	}
	if err == nil {
		m.Log.Info("a backup was made", "backup", result.ID, "place", result.Place, "bytes", result.Size, "added", result.Added)
	}
	return result, err
}

// elsewhere reports whether a place is another one than the configured, of which the state is.
func (m *Maker) elsewhere(to *config.BackupPlace) bool {
	configured := m.Plan.Config.Backup
	return to != nil && configured != nil && to.String() != configured.String()
}

func (m *Maker) makeAt(ctx context.Context, installation string, o BackupOptions) (*BackupResult, *backup.Manifest, error) {
	place, err := NewBackupPlace(m.Plan.Config, o.To)
	if err != nil {
		return nil, nil, err
	}
	to, closeTo, err := openDestination(ctx, place)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = closeTo() }()
	if err := open.AwaitBus(ctx, m.Bus); err != nil {
		return nil, nil, err
	}
	confirm := func(ctx context.Context) error { return m.States().Renew(ctx, m.Holder.ID) }
	manifest, err := backup.Make(ctx, to, backup.Options{
		Installation: installation, Version: plan.Version(), Backends: m.sources(), Bus: m.Bus, Binaries: m.Storages, Grace: m.grace(),
		Progress: o.Progress, Logger: m.Log, Confirm: confirm,
	})
	if err != nil {
		return nil, nil, err
	}
	result := &BackupResult{
		ID: manifest.ID, Place: place.String(), Started: manifest.Started, Ended: manifest.Ended, Size: manifest.Size, Added: manifest.Added,
		Problems: append([]string{}, manifest.Problems...),
	}
	// The retention is of the configured place alone: somebody else may keep backups in others.
	keep := backup.Keep{}
	if o.To == nil {
		keep = backup.Keep(m.Plan.Config.Backup.Keep)
	}
	if result.Removed, err = backup.Prune(ctx, to, keep, confirm); err != nil {
		// The backup itself is complete.
		result.Problems = append(result.Problems, "old backups can't be removed: "+err.Error())
		m.Log.Error("old backups can't be removed", "error", err)
	}
	return result, manifest, nil
}

// sources are the backends with their stores.
func (m *Maker) sources() []backup.Source {
	var all []backup.Source
	for _, name := range slices.Sorted(maps.Keys(m.Backends)) {
		s := backup.Source{Name: name, Backend: m.Backends[name], Stores: map[string]driver.Store{}}
		for _, o := range m.Plan.Stores {
			if m.Plan.Config.Stores[o.Name].Backend == name {
				s.Stores[o.Name] = m.Set.Store(o.Name).Driver()
			}
		}
		all = append(all, s)
	}
	return all
}

// grace is the shortest time for which binaries stay that no object references.
func (m *Maker) grace() (shortest time.Duration) {
	for _, b := range m.Plan.Config.Binaries {
		if shortest == 0 || b.Grace < shortest {
			shortest = b.Grace
		}
	}
	return shortest
}

// BackupLine is one of the JSON lines with which a serving process replies to a request for a backup.
type BackupLine struct {
	Progress *backup.Progress `json:"progress,omitempty"`
	Result   *BackupResult    `json:"result,omitempty"`
	Failure  *hold.Failure    `json:"failure,omitempty"`
}

// BackupRequest is the request of a command.
type BackupRequest struct {
	To *config.BackupPlace `json:"to,omitempty"`
}

func backupServed(ctx context.Context, h hold.Holder, o BackupOptions) (*BackupResult, error) {
	data, err := json.Marshal(BackupRequest{To: o.To})
	if err != nil {
		return nil, err
	}
	body, err := hold.Control(ctx, h, http.MethodPost, "/backup", strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	for lines := json.NewDecoder(body); ; {
		var line BackupLine
		switch err := lines.Decode(&line); {
		case err != nil:
			return nil, errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed, and the backup was not completed", h)
		case line.Failure != nil:
			return nil, line.Failure.Err()
		case line.Result != nil:
			return line.Result, nil
		case line.Progress != nil && o.Progress != nil:
			o.Progress(*line.Progress)
		}
	}
}
