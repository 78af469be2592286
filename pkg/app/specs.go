package app

import (
	"belfry/config"
	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/listener"
	"belfry/pkg/store"
)

// builtIn lists the names of all built-in listeners.
var builtIn = []string{mapping.Name, cascade.Name, mail.Name, sweep.Name}

// specs returns the built-in listeners that the configuration enables, without their handlers.
func (p *plan) specs() []listener.Spec {
	var all []listener.Spec
	for _, spec := range []listener.Spec{p.mappingSpec(), p.cascadeSpec(), p.mailSpec(), p.sweepSpec()} {
		if len(spec.Filters) > 0 {
			all = append(all, spec)
		}
	}
	return all
}

func (p *plan) mappingSpec() listener.Spec {
	return listener.Spec{
		Name: mapping.Name, Filters: mapping.Filters(store.NewSet(nil, p.mappings)), Concurrency: mappingConcurrency,
		Start: listener.StartAll(), AckWait: workerAckWait,
	}
}

func (p *plan) cascadeSpec() listener.Spec {
	return listener.Spec{
		Name: cascade.Name, Filters: cascade.Filters(store.NewSet(nil, p.mappings)), Concurrency: cascadeConcurrency, Prefetch: -1,
		Start: listener.StartAll(), AckWait: workerAckWait,
	}
}

// mailSpec selects no events if no mails are configured.
func (p *plan) mailSpec() listener.Spec {
	if p.config.Authentication.Email == nil {
		return listener.Spec{Name: mail.Name}
	}
	return mail.Listens(config.TokenStore)
}

// sweepSpec selects no events if no binaries are configured.
func (p *plan) sweepSpec() listener.Spec {
	spec := listener.Spec{Name: sweep.Name, Concurrency: sweepConcurrency, Start: listener.StartAll(), AckWait: workerAckWait}
	if len(p.config.Binaries) == 0 {
		return spec
	}
	var stores []string
	for i := range p.stores {
		switch name := p.stores[i].Name; name {
		case config.ContentStore, config.SealKeyStore, config.QuotaStore:
		default:
			stores = append(stores, name)
		}
	}
	spec.Filters = sweep.Filters(stores)
	return spec
}
