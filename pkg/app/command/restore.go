package command

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/missed"
	"belfry/pkg/operations/backup"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// RestoreOptions are the options of Restore.
type RestoreOptions struct {
	From     *config.BackupPlace // nil: the configured one
	ID       string              // of the backup; "": the latest
	Progress func(backup.Progress)
}

// RestoreReport is what was restored, and the verification after it.
type RestoreReport struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"` // when the backup began
	Report  *Report   `json:"report"`
}

// Clean reports whether copies and contents are right.
func (r *RestoreReport) Clean() bool { return r.Report.Clean() }

// Restore restores a backup into empty backends, an empty bus and empty storages, and verifies the result. An
// interrupted restore is repeated.
func Restore(ctx context.Context, c *config.Config, o RestoreOptions) (*RestoreReport, error) {
	p, err := plan.Compile(c)
	if err != nil {
		return nil, err
	}
	from, closeFrom, err := openExisting(ctx, c, o.From)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeFrom() }()
	if o.ID == "" {
		if o.ID, err = from.Latest(ctx); err != nil {
			return nil, err
		}
	}
	m, err := from.Manifest(ctx, o.ID)
	if err != nil {
		return nil, err
	}
	r := &restoring{plan: p, from: from, manifest: m, options: o}
	if err := r.fits(); err != nil {
		return nil, err
	}
	lock, err := hold.LockFolder(c.Data, "restore")
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	report, err := r.run(ctx)
	if err != nil {
		return nil, err
	}
	return &RestoreReport{ID: m.ID, Started: m.Started, Report: report}, nil
}

// restoring is a restore.
type restoring struct {
	plan     *plan.Plan
	from     *backup.Destination
	manifest *backup.Manifest
	options  RestoreOptions
	again    bool // the stores may have a part of the backup
	owned    bool // so may the folders and the bus, since the marker existed
	refused  bool // something is not empty

	backends map[string]driver.Backend
	storages map[string]storage.Storage
	set      *store.Set
	bus      *bus.Bus
}

// fits returns an error if the backup has something that the configuration lacks.
func (r *restoring) fits() error {
	c := r.plan.Config
	var problems config.Problems
	for _, b := range r.manifest.Backends {
		there, known := c.Backends[b.Name]
		if len(b.Files) > 0 && (!known || there.File == nil) {
			problems = append(problems,
				c.Problem("backends", "the backup has the folder of the backend %s, which can only be restored to a "+
					"backend of type file: restore it with such a backend, then move it with `belfry migrate`", b.Name))
			continue
		}
		for _, name := range b.Stores {
			switch s := c.Stores[name]; {
			case s == nil:
				problems = append(problems,
					c.Problem("stores", "the backup has the store %s, and the configuration does not: add it", name))
			case len(b.Files) > 0 && s.Backend != b.Name:
				problems = append(problems, c.Problem("stores."+name+".backend",
					"the backup has the store in the backend %s: restore it there, then move it with `belfry migrate`",
					b.Name))
			case len(b.Files) == 0 && c.Backends[s.Backend].File != nil && r.hasFiles(s.Backend):
				problems = append(problems,
					c.Problem("stores."+name+
						".backend", "the backup has the folder of this backend, without the store: restore it to "+
						"another backend, then move it with `belfry migrate`"))
			}
		}
	}
	for _, b := range r.manifest.Binaries {
		if c.Binaries[b.Name] == nil {
			problems = append(problems, c.Problem("binaries",
				"the backup has the contents of the service %s, and the configuration does not have it: add it",
				b.Name))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

func (r *restoring) hasFiles(backend string) bool {
	return slices.ContainsFunc(r.manifest.Backends,
		func(b backup.Backend) bool { return b.Name == backend && len(b.Files) > 0 })
}

// folders are the folders that the restore fills: of backends, and of the embedded bus.
func (r *restoring) folders() []string {
	var all []string
	for _, s := range r.plan.Config.Stores {
		if f := r.plan.Config.Backends[s.Backend].File; f != nil {
			all = append(all, f.Folder)
		}
	}
	if len(r.plan.Config.Bus.URL) == 0 {
		all = append(all, plan.EmbeddedBus(r.plan.Config).Folder)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *restoring) run(ctx context.Context) (*Report, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	report, err := r.restore(ctx)
	if err = errors.Join(r.ofBus(ctx, err), r.close(ctx)); err != nil {
		if r.refused && !r.owned {
			return nil, errors.Join(err, r.undo())
		}
		return nil, errs.Wrap(err,
			errs.KindOf(err), "the restore is incomplete, and no belfry serves its data: remove the cause, then run "+
				"`belfry restore` again, which starts over")
	}
	if err := os.Remove(filepath.Join(r.plan.Config.Data, hold.RestoreMarker)); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable,
			"the restore is complete, but the file that marks it as incomplete can't be removed")
	}
	return report, hold.SyncFolder(r.plan.Config.Data)
}

// ofBus adds the error of the embedded bus to an error: a failed publication only says that it was not acknowledged.
func (r *restoring) ofBus(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || r.bus == nil || len(r.plan.Config.Bus.URL) > 0 {
		return err
	}
	if why := r.bus.Ready(ctx); why != nil {
		return errs.Wrap(err, errs.Unavailable, "%s: %s", plan.EmbeddedBus(r.plan.Config).Folder, why)
	}
	return err
}

// begin checks that the folders are empty and writes the marker, or removes the data of an interrupted restore from
// them.
func (r *restoring) begin(ctx context.Context) error {
	data := r.plan.Config.Data
	found, err := hold.ReadMarker(data)
	if err != nil {
		return err
	}
	folders := r.folders()
	if found != nil {
		r.again, r.owned = true, true
		for _, folder := range found.Folders {
			if err := os.RemoveAll(folder); err != nil {
				return errs.Wrap(err, errs.Unavailable, "the data of an interrupted restore can't be removed")
			}
		}
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errs.Wrap(err, errs.Unavailable, "the folder %s can't be read", folder)
		}
		if len(entries) > 0 {
			return errs.New(errs.Invalid, "the folder %s is not empty, and a backup can only be restored into empty "+
				"data: move the data away, or choose another folder with --data", folder)
		}
	}
	if err := r.checkBus(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(hold.Marker{Backup: r.manifest.ID, Began: time.Now().UTC(), Folders: folders})
	if err != nil {
		return err
	}
	return hold.WriteDurably(data, hold.RestoreMarker, text)
}

// restore restores everything, and verifies it.
func (r *restoring) restore(ctx context.Context) (*Report, error) {
	var err error
	if r.storages, err = open.Storages(ctx, r.plan); err != nil {
		return nil, err
	}
	o := backup.RestoreOptions{
		Folders: map[string]string{}, Open: r.open, Binaries: r.storages, Progress: r.options.Progress,
		States: config.PositionStore, Again: func() bool { return r.again },
	}
	for name, b := range r.plan.Config.Backends {
		if b.File != nil {
			o.Folders[name] = b.File.Folder
		}
	}
	restored, err := backup.Restore(ctx, r.from, r.manifest, o)
	if err != nil {
		return nil, err
	}
	positions := r.set.Store(config.PositionStore)
	if err := missed.Restored(ctx, positions, restored.Next); err != nil {
		return nil, err
	}
	if err := renewSealKeys(ctx, r.set.Store(config.SealKeyStore)); err != nil {
		return nil, err
	}
	// Stores that were restored by records lack claims. They are created now, while no process serves, so that no
	// request waits for them later.
	claims := open.RequiredOf(r.plan, r.set, slog.New(slog.DiscardHandler))
	claims.Alone = true
	if err := fill.Complete(ctx, claims); err != nil {
		return nil, err
	}
	// Copies may differ because the backends were not read at the same moment.
	report, err := verifyAll(ctx, r.set, open.InOrder(open.Services(r.plan, r.storages, r.set, nil, nil, nil)),
		VerifyRequest{Repair: true}, verify.Options{Alone: true}, func(verify.Progress) {})
	if err != nil {
		return nil, err
	}
	if err := r.bus.Sync(ctx); err != nil {
		return nil, err
	}
	return report, r.states().Change(ctx, func(s *backup.State) error { s.Restoring = ""; return nil })
}

func (r *restoring) states() *backup.States { return open.BackupStates(r.set) }

// open opens the stores and the bus, once the folders are restored. Stores without files, and the streams, must be
// empty.
func (r *restoring) open(ctx context.Context) (map[string]*store.Store, bus.Requester, error) {
	var err error
	if r.backends, err = open.Backends(ctx, r.plan, open.BackendOnce); err != nil {
		return nil, nil, err
	}
	if r.set, err = open.Stores(ctx, r.plan, r.backends, open.StoreOnce, func(*store.Options) {}); err != nil {
		return nil, nil, err
	}
	if err := r.claim(ctx); err != nil {
		return nil, nil, err
	}
	if r.bus, err = open.BusAlone(ctx, r.plan); err != nil {
		return nil, nil, err
	}
	return r.set.Stores(), r.bus, r.emptyBus(ctx)
}

// claim marks the stores as having a part of a backup. Stores without files of the backup must be empty, or have a part
// of the same backup.
func (r *restoring) claim(ctx context.Context) error {
	return r.states().Change(ctx, func(s *backup.State) error {
		if other := s.Restoring; other != r.manifest.ID {
			if err := r.checkEmpty(ctx, other); err != nil {
				r.refused = true
				return err
			}
		} else {
			r.again = true
		}
		// The backup was made by a process that had the lease.
		s.Installation, s.Restoring, s.Lease = r.manifest.Installation, r.manifest.ID, nil
		return nil
	})
}

func (r *restoring) checkEmpty(ctx context.Context, restoring string) error {
	if restoring != "" {
		return errs.New(errs.Invalid, "the stores have a part of the backup %s, whose restore was interrupted: "+
			"restore that one with --backup, or name an empty database", restoring)
	}
	for _, b := range r.manifest.Backends {
		for _, records := range b.Records {
			s := r.set.Store(records.Store).Driver()
			page, err := s.Scan(ctx, nil, 1)
			if err != nil {
				return err
			}
			if len(page.Records) > 0 {
				return errs.New(errs.Invalid, "the store %s in backend %s is not empty, and a backup can only be "+
					"restored into empty data: name another database in the configuration", records.Store,
					r.plan.Config.Stores[records.Store].Backend)
			}
		}
	}
	return nil
}

// checkBus checks that the streams of an external bus are empty. The embedded bus has no folder yet.
func (r *restoring) checkBus(ctx context.Context) error {
	if len(r.plan.Config.Bus.URL) == 0 || r.owned {
		return nil
	}
	b, err := open.BusAlone(ctx, r.plan)
	if err != nil {
		return err
	}
	for _, stream := range r.manifest.Streams {
		s, err := b.JetStream().Stream(ctx, stream.Name)
		if err == nil && s.CachedInfo().State.Msgs > 0 {
			err = errs.New(errs.Invalid, "the stream %s of the bus is not empty, and a backup can only be restored "+
				"into empty data: delete the streams EVENTS, DEAD and RETRY, or use another account of the bus",
				stream.Name)
		}
		if err != nil {
			return errors.Join(errs.Wrap(err, errs.KindOf(err), "the bus"), open.CloseBus(ctx, b))
		}
	}
	return open.CloseBus(ctx, b)
}

// emptyBus purges the streams that an interrupted restore has filled. The embedded streams are new, like their folder.
func (r *restoring) emptyBus(ctx context.Context) error {
	if !r.owned || len(r.plan.Config.Bus.URL) == 0 {
		return nil
	}
	for _, stream := range r.manifest.Streams {
		s, err := r.bus.JetStream().Stream(ctx, stream.Name)
		if err == nil {
			err = s.Purge(ctx)
		}
		if err != nil {
			return errs.Wrap(err, errs.Unavailable,
				"the stream %s of the bus, which has a part of the backup, can't be purged", stream.Name)
		}
	}
	return nil
}

// undo removes the written data if a place turned out not to be empty.
func (r *restoring) undo() error {
	for _, folder := range r.folders() {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(r.plan.Config.Data, hold.RestoreMarker))
}

func (r *restoring) close(ctx context.Context) error {
	var all []error
	if r.bus != nil {
		all = append(all, open.CloseBus(ctx, r.bus))
	}
	return errors.Join(append(all, open.CloseBackends(r.backends), open.CloseStorages(r.storages))...)
}
