package plan

import (
	"maps"
	"slices"
	"time"

	"belfry/config"
	"belfry/listeners/aggregate"
	"belfry/listeners/cascade"
	"belfry/listeners/copies"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/listener"
	"belfry/pkg/store"
)

const sweepConcurrency = 16

// OnBus returns the stores with operations over the bus.
func (p *Plan) OnBus() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(p.Config.Stores)) {
		if p.Config.Stores[name].Bus {
			all = append(all, name)
		}
	}
	return all
}

// BuiltIn lists the names of all built-in listeners.
var BuiltIn = []string{mapping.Name, copies.Name, aggregate.Name, cascade.Name, mail.Name, sweep.Name}

// RoleOf returns the role of the processes that run a built-in listener.
func RoleOf(listener string) string {
	if listener == copies.Name || listener == aggregate.Name { // they keep derived data, too
		return mapping.Name
	}
	return listener
}

// Specs returns the built-in listeners that the configuration enables, without their handlers.
func (p *Plan) Specs() []listener.Spec {
	var all []listener.Spec
	for _, spec := range append(p.WorkerSpecs(), p.MailSpec(), p.SweepSpec()) {
		if len(spec.Filters) > 0 {
			all = append(all, spec)
		}
	}
	return all
}

// WorkerSpecs returns the listeners whose work follows from objects alone, without their handlers. Those that the
// configuration does not need select no events.
func (p *Plan) WorkerSpecs() []listener.Spec {
	return []listener.Spec{p.MappingSpec(), p.CopySpec(), p.AggregateSpec(), p.CascadeSpec()}
}

// MappingSpec returns the listener that maintains arrays, without its handler.
func (p *Plan) MappingSpec() listener.Spec {
	return listener.Spec{
		Name: mapping.Name, Filters: mapping.Filters(store.NewSet(nil, p.Mappings)), Concurrency: mappingConcurrency,
		Start: listener.StartAll(), AckWait: WorkerAckWait,
	}
}

// CopySpec returns the listener that maintains copies of referenced objects, without its handler.
func (p *Plan) CopySpec() listener.Spec {
	return listener.Spec{
		Name: copies.Name, Filters: copies.Filters(store.CopiesOf(p.Stores)), Concurrency: copies.Concurrency,
		Prefetch: -1, Start: listener.StartAll(), AckWait: WorkerAckWait,
	}
}

// AggregateSpec returns the listener that maintains aggregates, without its handler.
func (p *Plan) AggregateSpec() listener.Spec {
	return listener.Spec{
		Name: aggregate.Name, Filters: aggregate.Filters(store.NewSet(nil, p.Mappings)),
		Concurrency: mappingConcurrency, Start: listener.StartAll(), AckWait: WorkerAckWait,
	}
}

// CascadeSpec returns the listener that deletes with targets, without its handler.
func (p *Plan) CascadeSpec() listener.Spec {
	return listener.Spec{
		Name: cascade.Name, Filters: cascade.Filters(store.Declared(p.Stores, p.Mappings)),
		Concurrency: cascadeConcurrency, Prefetch: -1, Start: listener.StartAll(), AckWait: WorkerAckWait,
	}
}

// MailSpec selects no events if no mails are configured.
func (p *Plan) MailSpec() listener.Spec {
	if p.Config.Authentication.Email == nil {
		return listener.Spec{Name: mail.Name}
	}
	return mail.Listens(config.TokenStore)
}

// SweepSpec selects no events if no binaries are configured.
func (p *Plan) SweepSpec() listener.Spec {
	spec := listener.Spec{Name: sweep.Name, Concurrency: sweepConcurrency, Start: listener.StartAll(),
		AckWait: WorkerAckWait}
	if len(p.Config.Binaries) == 0 {
		return spec
	}
	var stores []string
	for i := range p.Stores {
		switch name := p.Stores[i].Name; name {
		case config.ContentStore, config.SealKeyStore, config.QuotaStore:
		default:
			stores = append(stores, name)
		}
	}
	spec.Filters = sweep.Filters(stores)
	return spec
}

// Numbers of events that a worker has in flight. The mapping worker groups them by target, so that many events cost one
// write.
const (
	mappingConcurrency = 1024
	cascadeConcurrency = 16
)

// WorkerAckWait is how soon events that were in flight in a process that crashed are redelivered. A running
// worker sends heartbeats more often.
const WorkerAckWait = 10 * time.Second
