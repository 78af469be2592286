package command

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
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

// BackupResult is the result of a backup.
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

// BackupRequest asks for a backup.
type BackupRequest struct {
	To *config.BackupPlace `json:"to,omitempty"` // nil: the configured one
}

// Backup makes a backup. A command that makes the backup itself yields to a belfry that waits for the data.
var Backup = Operation[BackupRequest, BackupResult, backup.Progress]{
	Name: "backup", Max: 1 << 16, Broken: ", and the backup was not completed",
	Reads: func(BackupRequest) bool { return true },
	Check: func(c *config.Config, q BackupRequest) error {
		_, err := NewBackupPlace(c, q.To)
		return err
	},
	Run: func(ctx context.Context, at *Place, q BackupRequest,
		report func(backup.Progress)) (result *BackupResult, err error) {
		err = at.Backups(ctx, func(ctx context.Context, m *Maker) (err error) {
			var last time.Time
			result, err = m.Make(ctx, BackupOptions{To: q.To, Progress: func(p backup.Progress) {
				if now := time.Now(); now.Sub(last) >= progressInterval {
					last = now
					report(p)
				}
			}})
			return err
		})
		return result, err
	},
	Show: func(s Streams, _ BackupRequest) (func(backup.Progress), func(error)) { return showBackup(s) },
	Commands: []Command[BackupRequest, BackupResult]{{Words: "backup make", Help: "Make a backup (default).",
		Default: true, Flags: &backupFlags{}}},
	Text: func(w io.Writer, _ BackupRequest, r *BackupResult) error { return writeBackup(w, r) },
	Console: &Console[BackupRequest, BackupResult]{
		Title: "Backups", Path: console.BackupPath, Button: "Back up now",
		Offered: func(c *config.Config) bool { return c.Backup != nil },
		About:   "A run makes a backup in the configured place, and removes old ones as the configuration says.",
	},
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

// NewHolder returns the holder of the lease of a backup: a run of belfry that has the data folder.
func NewHolder(c *config.Config, run string) backup.Holder {
	host, _ := os.Hostname()
	return backup.Holder{ID: object.NewUUID(), Run: run, Host: host, Data: c.Data}
}

// States is the state that all processes share.
func (m *Maker) States() *backup.States { return open.BackupStates(m.Set) }

// Make makes a requested backup.
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
	making, stopRenewing := store.KeepLease(ctx, leaseInterval,
		func(ctx context.Context) error { return m.States().Renew(ctx, m.Holder.ID) })
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
		m.Log.Warn("the end of a backup can't be stored", "error", ended)
	}
	if err == nil {
		m.Log.Info("a backup was made", "backup", result.ID, "place", result.Place, "bytes", result.Size,
			"added", result.Added)
	}
	return result, err
}

// elsewhere reports whether a place differs from the configured one, which the state is about.
func (m *Maker) elsewhere(to *config.BackupPlace) bool {
	configured := m.Plan.Config.Backup
	return to != nil && configured != nil && to.String() != configured.String()
}

func (m *Maker) makeAt(ctx context.Context, installation string,
	o BackupOptions) (*BackupResult, *backup.Manifest, error) {
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
		Installation: installation, Version: plan.Version(), Backends: m.sources(), Bus: m.Bus, Binaries: m.Storages,
		Grace: m.grace(), Progress: o.Progress, Logger: m.Log, Confirm: confirm,
	})
	if err != nil {
		return nil, nil, err
	}
	result := &BackupResult{
		ID: manifest.ID, Place: place.String(), Started: manifest.Started, Ended: manifest.Ended, Size: manifest.Size,
		Added: manifest.Added, Problems: append([]string{}, manifest.Problems...),
	}
	// The retention only applies to the configured place: others may keep backups in other places.
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

// sources returns the backends with their stores.
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

// grace is the shortest time for which unreferenced binaries are kept.
func (m *Maker) grace() (shortest time.Duration) {
	for _, b := range m.Plan.Config.Binaries {
		if shortest == 0 || b.Grace < shortest {
			shortest = b.Grace
		}
	}
	return shortest
}
