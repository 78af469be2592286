package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// The object that holds the keys, and its fields, which no export and no reply contains. An object whose key
// was never changed has one key. A belfry of an earlier release reads that alone.
const (
	sealKeyUUID   = "current"
	sealKeyField  = "_key"
	sealKeysField = "_keys" // all keys, oldest first
)

const (
	// sealKeysInterval is how often a process reads the keys. It is less than the time after which a new key is used.
	sealKeysInterval = 5 * time.Second
	sealKeyDelay     = time.Minute
	maxSealKeys      = 16
)

// sealKey is a key as it is stored.
type sealKey struct {
	Key   []byte     `json:"key"`
	From  *time.Time `json:"from,omitempty"`
	Until *time.Time `json:"until,omitempty"`
}

// openSealer reads the keys for sealing once their store is available. All processes that share the stores have
// the same.
func (a *App) openSealer(ctx context.Context, s *store.Store) error {
	err := a.awaitBackend(ctx, a.now().config.Stores[config.SealKeyStore].Backend, func() (err error) {
		a.sealer, err = loadSealer(ctx, s)
		return err
	})
	if err == nil {
		a.followSealKeys(s)
	}
	return err
}

// followSealKeys reads the keys again from time to time: another process may have added one.
func (a *App) followSealKeys(s *store.Store) {
	a.every(sealKeysInterval, "the keys for sealing", func(ctx context.Context) bool {
		if err := readSealKeys(ctx, s, a.sealer); err != nil && ctx.Err() == nil {
			a.log.Error("the keys for sealing can't be read; the ones read before are used", "error", err)
		}
		return true
	})
}

// readSealKeys replaces the keys of a sealer by those that are stored.
func readSealKeys(ctx context.Context, s *store.Store, sealer *seal.Sealer) error {
	stored, err := s.Get(ctx, sealKeyUUID)
	if err != nil {
		return err
	}
	keys, err := sealKeysOf(stored)
	if err != nil {
		return err
	}
	return sealer.SetKeys(keys)
}

// loadSealer reads the keys, or creates the first. Of processes that do so at once, the first creates it for all.
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
	keys, err := sealKeysOf(stored)
	if err != nil {
		return nil, err
	}
	return seal.NewWithKeys(keys, time.Now)
}

// sealKeysOf returns the keys of the object, oldest first.
func sealKeysOf(stored store.Stored) ([]seal.Key, error) {
	field, found := sealKeysField, []sealKey{}
	text := object.Field(stored.Body, sealKeysField)
	broken := text != nil && json.Unmarshal(text, &found) != nil
	if text == nil {
		field, found = sealKeyField, make([]sealKey, 1)
		broken = json.Unmarshal(object.Field(stored.Body, sealKeyField), &found[0].Key) != nil
	}
	var keys []seal.Key
	for _, k := range found {
		broken = broken || len(k.Key) != seal.KeySize
		next := seal.Key{Secret: k.Key}
		if k.From != nil {
			next.From = *k.From
		}
		if k.Until != nil {
			next.Until = *k.Until
		}
		keys = append(keys, next)
	}
	if broken || len(keys) == 0 {
		return nil, errs.New(errs.Internal, "the object %s of store %s has no key in %s: restore it from a backup, or delete it, and the next start creates another",
			sealKeyUUID, config.SealKeyStore, field)
	}
	return keys, nil
}

// addSealKey adds a key, which is used after sealKeyDelay. What was sealed with those before is opened for keep
// after that. Keys that have ended are removed.
func addSealKey(ctx context.Context, s *store.Store, now time.Time, keep time.Duration) (keys []seal.Key, err error) {
	if _, err := loadSealer(ctx, s); err != nil { // creates the first
		return nil, err
	}
	_, err = s.Mutate(ctx, sealKeyUUID, func(stored store.Stored) (store.Mutation, error) {
		all, err := sealKeysOf(stored)
		if err != nil {
			return store.Mutation{}, err
		}
		keys = nil
		from := now.Add(sealKeyDelay).UTC().Truncate(time.Second)
		until := from.Add(keep)
		for _, k := range all {
			if k.Until.IsZero() || k.Until.After(until) {
				k.Until = until
			}
			if !k.Ended(now) {
				keys = append(keys, k)
			}
		}
		if len(keys) == maxSealKeys {
			return store.Mutation{}, errs.New(errs.Exists, "there are %d keys already; wait until one has ended, or end the earlier ones sooner with a shorter --keep", maxSealKeys)
		}
		keys = append(keys, seal.Key{Secret: seal.NewKey(), From: from})
		return store.Mutation{Fields: sealKeyFields(keys)}, nil
	})
	return keys, err
}

// renewSealKeys replaces all keys by a new one: what was sealed before can't be opened any more. After a restore the log
// is another one, in which a position that a client remembers has another meaning.
func renewSealKeys(ctx context.Context, s *store.Store) error {
	_, err := s.Mutate(ctx, sealKeyUUID, func(store.Stored) (store.Mutation, error) {
		o := object.Object{sealKeysField: nil}
		o.Set(sealKeyField, seal.NewKey())
		return store.Mutation{Fields: o}, nil
	})
	if errors.Is(err, errs.NotFound) {
		return nil // the first start creates one
	}
	return err
}

// sealKeyFields are the fields of the object. A process of an earlier release reads the first key at its start:
// it seals with what the others open, and until then opens what they seal.
func sealKeyFields(keys []seal.Key) object.Object {
	var all []sealKey
	for _, k := range keys {
		next := sealKey{Key: k.Secret}
		if !k.From.IsZero() {
			next.From = &k.From
		}
		if !k.Until.IsZero() {
			next.Until = &k.Until
		}
		all = append(all, next)
	}
	o := object.Object{}
	o.Set(sealKeysField, all)
	o.Set(sealKeyField, keys[0].Secret)
	return o
}
