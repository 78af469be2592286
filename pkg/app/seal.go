package app

import (
	"context"
	"encoding/json"
	"errors"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/seal"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// The object that holds the key, and its field, which no export and no reply contains.
const (
	sealKeyUUID  = "current"
	sealKeyField = "_key"
)

// openSealer reads the key for sealing once its store is available. All processes that share the stores have
// the same.
func (a *App) openSealer(ctx context.Context, s *store.Store) error {
	return a.awaitBackend(ctx, a.config.Stores[config.SealKeyStore].Backend, func() (err error) {
		a.sealer, err = loadSealer(ctx, s)
		return err
	})
}

// loadSealer reads the key, or creates it. Of processes that do so at once, the first creates it for all.
func loadSealer(ctx context.Context, s *store.Store) (*seal.Sealer, error) {
	stored, err := s.Get(ctx, sealKeyUUID)
	if errors.Is(err, errs.NotFound) {
		o := object.Object{}
		o.Set(sealKeyField, seal.NewKey())
		if stored, err = s.Save(ctx, o, sealKeyUUID); errors.Is(err, errs.Exists) {
			stored, err = s.Get(ctx, sealKeyUUID)
		}
	}
	if err != nil {
		return nil, err
	}
	var key []byte
	if json.Unmarshal(object.Field(stored.Body, sealKeyField), &key) != nil || len(key) != seal.KeySize {
		return nil, errs.New(errs.Internal, "the object %s of store %s has no key in %s: restore it from a backup, or delete it, and the next start creates another",
			sealKeyUUID, config.SealKeyStore, sealKeyField)
	}
	return seal.New(key)
}
