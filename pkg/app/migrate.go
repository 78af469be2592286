package app

import (
	"context"
	"errors"
	"log/slog"
	"reflect"

	"belfry/config"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/migrate"
	"belfry/pkg/store"
)

// MigrateReport is what became of each store and binary service that moved.
type MigrateReport struct {
	Stores   []*migrate.Result `json:"stores"`
	Binaries []*migrate.Result `json:"binaries"`
	Stayed   []string          `json:"stayed"` // in the same place in both configurations
}

// Clean reports whether everything is in the new place as it was in the old.
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

// Migrate moves the stores and binaries of one configuration to where another
// has them. Neither may be in use; whatever is there already stays.
func Migrate(ctx context.Context, from, to *config.Config, tell func(migrate.Progress)) (report *MigrateReport, err error) {
	m := &migration{tell: tell, report: &MigrateReport{Stores: []*migrate.Result{}, Binaries: []*migrate.Result{}, Stayed: []string{}}}
	if m.from.plan, err = compile(from); err != nil {
		return nil, err
	}
	if m.to.plan, err = compile(to); err != nil {
		return nil, err
	}
	if err := m.fits(); err != nil {
		return nil, err
	}
	if err := m.from.plan.hasData(); err != nil {
		return nil, err
	}
	unlock, err := lockBoth(from.Data, to.Data)
	if err != nil {
		return nil, err
	}
	defer unlock()
	defer func() { err = errors.Join(err, m.from.close(), m.to.close()) }()
	if err := m.run(ctx); err != nil {
		return nil, err
	}
	return m.report, nil
}

func lockBoth(a, b string) (unlock func(), err error) {
	first, err := LockData(a, "migrate")
	if err != nil || a == b {
		return func() { first.Unlock() }, err
	}
	second, err := LockData(b, "migrate")
	if err != nil {
		first.Unlock()
		return nil, err
	}
	return func() { second.Unlock(); first.Unlock() }, nil
}

type migration struct {
	from, to side
	tell     func(migrate.Progress)
	report   *MigrateReport
}

// side is one of the two configurations, with what of it has been opened. A
// backend that both have in the same place is opened by neither: its stores stay.
type side struct {
	plan     *plan
	closing  []func() error
	stores   map[string]*store.Store
	storages map[string]driver.Storage
}

func (s *side) close() error {
	var all []error
	for _, c := range s.closing {
		all = append(all, c())
	}
	return errors.Join(all...)
}

// moves reports whether a store is elsewhere in the other configuration.
func (m *migration) moves(name string) bool {
	a, b := m.from.plan.config, m.to.plan.config
	return !reflect.DeepEqual(a.Backends[a.Stores[name].Backend], b.Backends[b.Stores[name].Backend])
}

func (m *migration) movesBinaries(name string) bool {
	a, b := m.from.plan.config.Binaries[name], m.to.plan.config.Binaries[name]
	return !reflect.DeepEqual(a.File, b.File) || !reflect.DeepEqual(a.S3, b.S3)
}

// fits reports stores and services that the new configuration lacks.
func (m *migration) fits() error {
	a, b := m.from.plan.config, m.to.plan.config
	var problems config.Problems
	for _, name := range names(a.Stores) {
		if b.Stores[name] == nil {
			problems = append(problems, b.Problem("stores", "has no store %s, which the old configuration has: where should its objects go?", name))
		}
	}
	for _, name := range names(a.Binaries) {
		if b.Binaries[name] == nil {
			problems = append(problems, b.Problem("binaries", "has no service %s, which the old configuration has: where should its contents go?", name))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// open opens the stores and storages that move.
func (s *side) open(ctx context.Context, moves, movesBinaries func(name string) bool, in func(name string) bool) error {
	s.stores, s.storages = map[string]*store.Store{}, map[string]driver.Storage{}
	backends, err := s.plan.openBackendsOf(ctx, slog.New(slog.DiscardHandler), func(name string) bool { return in(name) && moves(name) })
	if err != nil {
		return err
	}
	s.closing = append(s.closing, func() error { return closeBackends(backends) })
	for _, o := range s.plan.stores {
		if !in(o.Name) || !moves(o.Name) {
			continue
		}
		backend := s.plan.config.Stores[o.Name].Backend
		st, err := openOnce(ctx, backend, backends[backend], o)
		if err != nil {
			return err
		}
		s.stores[o.Name] = st
	}
	for _, name := range names(s.plan.config.Binaries) {
		if !movesBinaries(name) {
			continue
		}
		st, err := openStorage(ctx, s.plan.config.Binaries[name])
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "binaries.%s", name)
		}
		s.closing = append(s.closing, st.Close)
		s.storages[name] = st
	}
	return nil
}

func (m *migration) run(ctx context.Context) error {
	a := m.from.plan.config
	known := func(name string) bool { return a.Stores[name] != nil }
	service := func(name string) bool { return a.Binaries[name] != nil && m.movesBinaries(name) }
	for _, s := range []*side{&m.from, &m.to} {
		if err := s.open(ctx, m.moves, service, known); err != nil {
			return err
		}
	}
	// Contents first: no object is in the new place without those it names.
	for _, name := range names(a.Binaries) {
		if !service(name) {
			m.report.Stayed = append(m.report.Stayed, "binaries."+name)
			continue
		}
		r, err := migrate.Contents(ctx, name, m.from.storages[name], m.to.storages[name], m.tell)
		if err != nil {
			return err
		}
		m.report.Binaries = append(m.report.Binaries, r)
	}
	for _, name := range names(a.Stores) {
		if !m.moves(name) {
			m.report.Stayed = append(m.report.Stayed, name)
			continue
		}
		r, err := migrate.Store(ctx, m.from.stores[name], m.to.stores[name], m.tell)
		if err != nil {
			return err
		}
		m.report.Stores = append(m.report.Stores, r)
	}
	return nil
}
