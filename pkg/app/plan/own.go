package plan

import (
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/record"
	"belfry/pkg/binary"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/store/query"
)

// placeBinaries sets which properties of the stores hold binaries, and indexes objects by the binaries
// that they hold.
func (p *Plan) placeBinaries() {
	for i := range p.Stores {
		o := &p.Stores[i]
		if o.Name == config.ContentStore {
			continue
		}
		o.IndexBinaries = len(p.Config.Binaries) > 0
		for _, name := range slices.Sorted(maps.Keys(p.Config.Binaries)) {
			o.Binaries = append(o.Binaries, p.Config.Binaries[name].Map[o.Name].Names...)
		}
	}
}

// userFinder returns by which fields admins find users.
func (p *Plan) userFinder() record.UserFinder {
	users := p.Config.Authentication.UserStore
	return record.UserFinder{Title: p.Titles[users], Private: p.Config.Stores[users].Private}
}

// placeOwn configures belfry's own stores: their indexes, and which of them need no events.
func (p *Plan) placeOwn() {
	for i := range p.Stores {
		switch o := &p.Stores[i]; o.Name {
		case p.Config.Authentication.UserStore:
			o.Indexes = append(o.Indexes,
				query.Index{Name: deletion.DeletionIndex, Fields: []string{deletion.DeletionIndex}})
			o.KeyIndexes = append(o.KeyIndexes, p.userFinder().Index())
		case p.Config.Authentication.IdentStore:
			o.KeyIndexes = append(o.KeyIndexes, record.IdentIndex())
		case config.SessionStore:
			o.KeyIndexes = append(o.KeyIndexes, record.SessionIndexes()...)
			o.Indexes = append(o.Indexes,
				query.Index{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}})
		case config.TokenStore:
			o.Indexes = append(o.Indexes,
				query.Index{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}})
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
