package app

import (
	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/binary"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/store/query"
)

// placeOwn configures belfry's own stores: how their objects are found, and which of them need no events.
func (p *plan) placeOwn() {
	for i := range p.stores {
		switch o := &p.stores[i]; o.Name {
		case p.config.Authentication.UserStore:
			o.Indexes = append(o.Indexes, query.Index{Name: account.DeletionIndex, Fields: []string{account.DeletionIndex}})
		case config.SessionStore, config.TokenStore:
			o.Indexes = append(o.Indexes, query.Index{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}})
		case config.ContentStore:
			o.Indexes = append(o.Indexes, binary.ContentsOptions(o.Name).Indexes...)
		case config.QuotaStore:
			own := binary.QuotasOptions(o.Name)
			o.NoEvents, o.Indexes = own.NoEvents, append(o.Indexes, own.Indexes...)
		case config.RequestStore:
			own := idempotent.RequestsOptions(o.Name)
			o.NoEvents, o.Indexes = own.NoEvents, append(o.Indexes, own.Indexes...)
		case config.PositionStore, config.SealKeyStore:
			o.NoEvents = true
		}
	}
}
