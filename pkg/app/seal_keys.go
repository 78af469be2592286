package app

import (
	"context"
	"errors"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// SealKey is what is shown of a key for sealing: not the key.
type SealKey struct {
	From    *time.Time `json:"from,omitempty"`  // nil: since the first start
	Until   *time.Time `json:"until,omitempty"` // nil: without an end
	Current bool       `json:"current"`         // texts are sealed with it now
}

// KeysRequest adds a key, or only lists them.
type KeysRequest struct {
	Rotate bool          `json:"rotate,omitempty"`
	Keep   time.Duration `json:"keep,omitempty"` // how long what the earlier keys have sealed is opened
}

// ManageKeys lists the keys for sealing, after it has added one if that is requested, through the belfry that
// serves the stores if one does. Errors: Invalid, Exists (there are too many), Unavailable.
func ManageKeys(ctx context.Context, c *config.Config, q KeysRequest) (keys []SealKey, err error) {
	err = withStores(ctx, c, "keys",
		func(_ *plan, set *store.Set) (err error) {
			keys, err = manageKeys(ctx, set.Store(config.SealKeyStore), q)
			return err
		},
		func(h Holder) error {
			served, err := ask[[]SealKey](ctx, h, "/seal-keys", q)
			if err == nil {
				keys = *served
			}
			return err
		})
	return keys, err
}

func manageKeys(ctx context.Context, s *store.Store, q KeysRequest) (shown []SealKey, err error) {
	var keys []seal.Key
	now := time.Now()
	if q.Rotate {
		keys, err = addSealKey(ctx, s, now, q.Keep)
	} else {
		var stored store.Stored
		if stored, err = s.Get(ctx, sealKeyUUID); errors.Is(err, errs.NotFound) {
			return []SealKey{}, nil // the first start creates one
		}
		if err == nil {
			keys, err = sealKeysOf(stored)
		}
	}
	if err != nil {
		return nil, err
	}
	current := seal.Current(keys, now)
	for i, k := range keys {
		if k.Ended(now) {
			continue
		}
		next := SealKey{Current: i == current}
		if !k.From.IsZero() {
			next.From = &k.From
		}
		if !k.Until.IsZero() {
			next.Until = &k.Until
		}
		shown = append(shown, next)
	}
	return shown, nil
}

// manageKeys is manageKeys of the serving process.
func (a *App) manageKeys(ctx context.Context, q KeysRequest) (*[]SealKey, error) {
	keys, err := manageKeys(ctx, a.now().set.Store(config.SealKeyStore), q)
	if err == nil && q.Rotate {
		a.log.Info("a key for sealing was added", "keys", len(keys))
	}
	return &keys, err
}
