package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
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
	if _, err := newBackupPlace(c, o.To); err != nil {
		return nil, err
	}
	err = withStores(ctx, c, "backup",
		func(p *plan, set *store.Set) error {
			giving, done := givingWay(ctx, p.config.Data)
			defer done()
			err := p.withRest(giving, func(b *bus.Bus, storages map[string]storage.Storage) (err error) {
				m := &backups{plan: p, set: set, bus: b, storages: storages, backends: p.opened, log: slog.New(slog.DiscardHandler), holder: newHolder(p.config, object.NewUUID())}
				result, err = m.make(giving, o)
				return err
			})
			if err != nil && errors.Is(context.Cause(giving), errGaveWay) {
				return errGaveWay
			}
			return err
		},
		func(h Holder) (err error) {
			result, err = backupServed(ctx, h, o)
			return err
		})
	return result, err
}

// openBusAlone opens the bus for a command. An embedded one serves this process alone.
func (p *plan) openBusAlone(ctx context.Context) (*bus.Bus, error) {
	o, err := p.busOptions()
	if err != nil {
		return nil, err
	}
	o.Logger = slog.New(slog.DiscardHandler)
	if o.URL == "" {
		server := embeddedBus(p.config)
		server.Listen, server.Logger = "", o.Logger
		o.Server = embedded.New(server)
	}
	b, err := bus.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := awaitBus(ctx, b); err != nil {
		return nil, errors.Join(err, closeBus(ctx, b))
	}
	return b, nil
}

// busPatience is how long a backup or a restore waits for the bus, which connects in the background.
const busPatience = 10 * time.Second

// awaitBus waits until the bus has its streams.
func awaitBus(ctx context.Context, b *bus.Bus) error {
	began := time.Now()
	for delays := backoff.New(10*time.Millisecond, time.Second); ; {
		err := b.Ready(ctx)
		if err == nil || time.Since(began) > busPatience || delays.Wait(ctx) != nil {
			return err
		}
	}
}

func closeBus(ctx context.Context, b *bus.Bus) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), unavailableStopTimeout)
	defer cancel()
	return b.Close(closing)
}

// withRest opens what a backup needs besides the stores.
func (p *plan) withRest(ctx context.Context, do func(*bus.Bus, map[string]storage.Storage) error) error {
	b, err := p.openBusAlone(ctx)
	if err != nil {
		return err
	}
	storages, err := p.openStorages(ctx)
	if err == nil {
		err = errors.Join(do(b, storages), closeStorages(storages))
	}
	return errors.Join(err, closeBus(ctx, b))
}

// backups makes the backups of a process.
type backups struct {
	plan     *plan
	set      *store.Set
	bus      *bus.Bus
	storages map[string]storage.Storage
	backends map[string]driver.Backend
	log      *slog.Logger
	holder   backup.Holder
}

// newHolder returns who makes a backup: a run of belfry that has the data folder.
func newHolder(c *config.Config, run string) backup.Holder {
	host, _ := os.Hostname()
	return backup.Holder{ID: object.NewUUID(), Run: run, Host: host, Data: c.Data}
}

// backupStates are where the state of backups is stored.
func backupStates(set *store.Set) *backup.States {
	return backup.NewStates(set.Store(config.PositionStore), nil)
}

func (m *backups) states() *backup.States { return backupStates(m.set) }

// make makes a backup that somebody has requested.
func (m *backups) make(ctx context.Context, o BackupOptions) (*BackupResult, error) {
	state, _, err := m.states().Take(ctx, m.holder, nil)
	if err != nil {
		return nil, err
	}
	return m.makeTaken(ctx, state.Installation, o)
}

// leaseInterval is how often a lease is renewed.
const leaseInterval = backup.LeaseTime / 5

// makeTaken makes a backup while this process has the lease, and ends the lease.
func (m *backups) makeTaken(ctx context.Context, installation string, o BackupOptions) (*BackupResult, error) {
	making, stopRenewing := store.KeepLease(ctx, leaseInterval, func(ctx context.Context) error { return m.states().Renew(ctx, m.holder.ID) })
	result, manifest, err := m.makeAt(making, installation, o)
	if lost := context.Cause(making); err != nil && lost != nil && ctx.Err() == nil {
		err = lost
	}
	stopRenewing()
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), unavailableStopTimeout)
	defer stop()
	ended := m.states().End(ending, m.holder.ID, backup.Result{
		Manifest: manifest, Err: err, Interrupted: err != nil && ctx.Err() != nil, Elsewhere: m.elsewhere(o.To),
	})
	if err == nil && ended != nil {
		m.log.Warn("that a backup has ended can't be stored", "error", ended)
	}
	if err == nil {
		m.log.Info("a backup was made", "backup", result.ID, "place", result.Place, "bytes", result.Size, "added", result.Added)
	}
	return result, err
}

// elsewhere reports whether a place is another one than the configured, of which the state is.
func (m *backups) elsewhere(to *config.BackupPlace) bool {
	configured := m.plan.config.Backup
	return to != nil && configured != nil && to.String() != configured.String()
}

func (m *backups) makeAt(ctx context.Context, installation string, o BackupOptions) (*BackupResult, *backup.Manifest, error) {
	place, err := newBackupPlace(m.plan.config, o.To)
	if err != nil {
		return nil, nil, err
	}
	to, closeTo, err := openDestination(ctx, place)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = closeTo() }()
	if err := awaitBus(ctx, m.bus); err != nil {
		return nil, nil, err
	}
	confirm := func(ctx context.Context) error { return m.states().Renew(ctx, m.holder.ID) }
	manifest, err := backup.Make(ctx, to, backup.Options{
		Installation: installation, Version: Version(), Backends: m.sources(), Bus: m.bus, Binaries: m.storages, Grace: m.grace(),
		Progress: o.Progress, Logger: m.log, Confirm: confirm,
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
		keep = backup.Keep(m.plan.config.Backup.Keep)
	}
	if result.Removed, err = backup.Prune(ctx, to, keep, confirm); err != nil {
		// The backup itself is complete.
		result.Problems = append(result.Problems, "old backups can't be removed: "+err.Error())
		m.log.Error("old backups can't be removed", "error", err)
	}
	return result, manifest, nil
}

// sources are the backends with their stores.
func (m *backups) sources() []backup.Source {
	var all []backup.Source
	for _, name := range names(m.backends) {
		s := backup.Source{Name: name, Backend: m.backends[name], Stores: map[string]driver.Store{}}
		for _, o := range m.plan.stores {
			if m.plan.config.Stores[o.Name].Backend == name {
				s.Stores[o.Name] = m.set.Store(o.Name).Driver()
			}
		}
		all = append(all, s)
	}
	return all
}

// grace is the shortest time for which binaries stay that no object references.
func (m *backups) grace() (shortest time.Duration) {
	for _, b := range m.plan.config.Binaries {
		if shortest == 0 || b.Grace < shortest {
			shortest = b.Grace
		}
	}
	return shortest
}

// backupLine is one of the JSON lines with which a serving process replies to a request for a backup.
type backupLine struct {
	Progress *backup.Progress `json:"progress,omitempty"`
	Result   *BackupResult    `json:"result,omitempty"`
	Failure  *failure         `json:"failure,omitempty"`
}

// backupRequest is the request of a command.
type backupRequest struct {
	To *config.BackupPlace `json:"to,omitempty"`
}

func backupServed(ctx context.Context, h Holder, o BackupOptions) (*BackupResult, error) {
	data, err := json.Marshal(backupRequest{To: o.To})
	if err != nil {
		return nil, err
	}
	body, err := control(ctx, h, http.MethodPost, "/backup", strings.NewReader(string(data)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	for lines := json.NewDecoder(body); ; {
		var line backupLine
		switch err := lines.Decode(&line); {
		case err != nil:
			return nil, errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed, and the backup was not completed", h)
		case line.Failure != nil:
			return nil, line.Failure.error()
		case line.Result != nil:
			return line.Result, nil
		case line.Progress != nil && o.Progress != nil:
			o.Progress(*line.Progress)
		}
	}
}

// controlBackup makes a backup, which ends when the client disconnects.
func (a *App) controlBackup(w http.ResponseWriter, r *http.Request) {
	var q backupRequest
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&q)
	var result *BackupResult
	if err == nil {
		var last time.Time
		result, err = a.backups().make(r.Context(), BackupOptions{To: q.To, Progress: func(p backup.Progress) {
			if now := time.Now(); now.Sub(last) >= progressInterval {
				last = now
				_ = lines.Encode(backupLine{Progress: &p})
				_ = http.NewResponseController(w).Flush()
			}
		}})
	}
	if err != nil {
		if r.Context().Err() == nil {
			a.log.Error("a backup that a command requested has failed", "error", err)
		}
		failed := a.failureOf("backup", err)
		_ = lines.Encode(backupLine{Failure: &failed})
		return
	}
	_ = lines.Encode(backupLine{Result: result})
}

// backups are those of the serving process. Each has a lease of its own.
func (a *App) backups() *backups {
	now := a.now()
	return &backups{plan: now.plan, set: now.set, bus: a.bus, storages: a.storages, backends: a.backends, log: a.log, holder: newHolder(now.config, a.run)}
}
