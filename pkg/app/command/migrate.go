package command

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/operations/migrate"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// MigrateReport is the result for each store and binary service that moved.
type MigrateReport struct {
	Stores   []*migrate.Result `json:"stores"`
	Binaries []*migrate.Result `json:"binaries"`
	Stayed   []string          `json:"stayed"` // in the same place in both configurations
	Notes    []string          `json:"notes"`  // hints for the operator
}

// Clean reports whether the new place has the same content as the old.
func (r *MigrateReport) Clean() bool {
	for _, all := range [][]*migrate.Result{r.Stores, r.Binaries} {
		for _, one := range all {
			if len(one.Differences) > 0 {
				return false
			}
		}
	}
	return true
}

// Migrate copies the stores and binaries of one configuration to the places that another one names. Neither may be in
// use; objects that the new place already has stay.
func Migrate(ctx context.Context, from, to *config.Config,
	progress func(migrate.Progress)) (report *MigrateReport, err error) {
	m := &migration{progress: progress, report: &MigrateReport{
		Stores: []*migrate.Result{}, Binaries: []*migrate.Result{}, Stayed: []string{}, Notes: []string{},
	}}
	if m.from.plan, err = plan.Compile(from); err != nil {
		return nil, err
	}
	if m.to.plan, err = plan.Compile(to); err != nil {
		return nil, err
	}
	if err := m.fits(); err != nil {
		return nil, err
	}
	if err := open.HasData(m.from.plan); err != nil {
		return nil, err
	}
	unlock, err := lockBoth(from.Data, to.Data)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer func() { err = errors.Join(err, m.close()) }()
	if err := m.run(ctx); err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	m.note()
	return m.report, nil
}

func lockBoth(a, b string) (unlock func(), err error) {
	first, err := hold.LockData(a, "migrate")
	if err != nil || a == b {
		return func() { first.Unlock() }, err
	}
	second, err := hold.LockData(b, "migrate")
	if err != nil {
		first.Unlock()
		return nil, err
	}
	return func() { second.Unlock(); first.Unlock() }, nil
}

type migration struct {
	from, to side
	opened   []opened
	closing  []func() error
	progress func(migrate.Progress)
	report   *MigrateReport
}

// opened is an open backend. Stores of both sides may be in it: it can be the source of one and the
// destination of another.
type opened struct {
	config  config.Backend
	backend driver.Backend
}

// side is one of the two configurations, with the stores and storages that move open.
type side struct {
	plan     *plan.Plan
	stores   map[string]*store.Store
	storages map[string]storage.Storage
}

func (m *migration) close() error {
	var all []error
	for _, c := range m.closing {
		all = append(all, c())
	}
	return errors.Join(all...)
}

// moves reports whether the configurations have a store in different places.
func (m *migration) moves(name string) bool {
	a, b := m.from.plan.Config, m.to.plan.Config
	return !reflect.DeepEqual(a.Backends[a.Stores[name].Backend], b.Backends[b.Stores[name].Backend])
}

func (m *migration) movesBinaries(name string) bool {
	a, b := m.from.plan.Config.Binaries[name], m.to.plan.Config.Binaries[name]
	return !reflect.DeepEqual(a.File, b.File) || !reflect.DeepEqual(a.S3, b.S3)
}

// fits returns an error for stores and services that are not in the new configuration.
func (m *migration) fits() error {
	a, b := m.from.plan.Config, m.to.plan.Config
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(a.Stores)) {
		if b.Stores[name] == nil {
			problems = append(problems, b.Problem("stores",
				"has no store %s, which the old configuration has: add it, as the place for its objects", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Binaries)) {
		if b.Binaries[name] == nil {
			problems = append(problems, b.Problem("binaries",
				"has no service %s, which the old configuration has: add it, as the place for its contents", name))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// backend opens a backend, unless it is open.
func (m *migration) backend(ctx context.Context, c config.Backend) (driver.Backend, error) {
	for _, o := range m.opened {
		if reflect.DeepEqual(o.config, c) {
			return o.backend, nil
		}
	}
	b, err := open.BackendOnce(ctx, "", c)
	if err != nil {
		return nil, err
	}
	m.opened = append(m.opened, opened{c, b})
	m.closing = append(m.closing, b.Close)
	return b, nil
}

// open opens the stores and storages of a side that move.
func (m *migration) open(ctx context.Context, s *side) error {
	s.stores, s.storages = map[string]*store.Store{}, map[string]storage.Storage{}
	for _, o := range s.plan.Stores {
		if m.from.plan.Config.Stores[o.Name] == nil || !m.moves(o.Name) {
			continue
		}
		name := s.plan.Config.Stores[o.Name].Backend
		b, err := m.backend(ctx, s.plan.Config.Backends[name])
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "backend %s", name)
		}
		if s.stores[o.Name], err = open.StoreOnce(ctx, name, b, o); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.from.plan.Config.Binaries)) {
		if !m.movesBinaries(name) {
			continue
		}
		st, err := open.Storage(ctx, s.plan.Config.Binaries[name])
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "binaries.%s", name)
		}
		m.closing = append(m.closing, st.Close)
		s.storages[name] = st
	}
	return nil
}

// note adds hints about data that does not move.
func (m *migration) note() {
	a, b := m.from.plan.Config, m.to.plan.Config
	if a.Data != b.Data && len(a.Bus.URL) == 0 {
		m.report.Notes = append(m.report.Notes, "the log of events in "+filepath.Join(a.Data, "bus")+" stays: "+
			"listeners do not receive its events again; belfry verify --repair repairs copies that mappings had not "+
			"yet updated")
	}
}

func (m *migration) run(ctx context.Context) error {
	a := m.from.plan.Config
	for _, s := range []*side{&m.from, &m.to} {
		if err := m.open(ctx, s); err != nil {
			return err
		}
		if positions := s.stores[config.PositionStore]; positions != nil {
			if err := open.CheckStoresComplete(ctx, positions); err != nil {
				return err
			}
		}
	}
	// Contents first, so that no object in the new place references a missing one.
	for _, name := range slices.Sorted(maps.Keys(a.Binaries)) {
		if !m.movesBinaries(name) {
			m.report.Stayed = append(m.report.Stayed, "binaries."+name)
			continue
		}
		r, err := migrate.Contents(ctx, name, m.from.storages[name], m.to.storages[name], m.progress)
		if err != nil {
			return err
		}
		m.report.Binaries = append(m.report.Binaries, r)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Stores)) {
		if !m.moves(name) {
			m.report.Stayed = append(m.report.Stayed, name)
			continue
		}
		r, err := migrate.Store(ctx, m.from.stores[name], m.to.stores[name], m.progress)
		if err != nil {
			return err
		}
		m.report.Stores = append(m.report.Stores, r)
	}
	return nil
}
