package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/seal"
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

type keysReply struct {
	Keys []SealKey `json:"keys,omitempty"`
	failure
}

// ManageKeys lists the keys for sealing, after it has added one if that is requested, through the belfry that
// serves the stores if one does. Errors: Invalid, Exists (there are too many), Unavailable.
func ManageKeys(ctx context.Context, c *config.Config, q KeysRequest) (keys []SealKey, err error) {
	err = withStores(ctx, c, "keys",
		func(_ *plan, set *store.Set) (err error) {
			keys, err = manageKeys(ctx, set.Store(config.SealKeyStore), q)
			return err
		},
		func(h Holder) (err error) {
			keys, err = askKeys(ctx, h, q)
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

func (a *App) controlKeys(w http.ResponseWriter, r *http.Request) {
	var q KeysRequest
	var reply keysReply
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&q)
	if err == nil {
		reply.Keys, err = manageKeys(r.Context(), a.set.Store(config.SealKeyStore), q)
	}
	if err != nil {
		reply.failure = a.failureOf("keys", err)
	} else if q.Rotate {
		a.log.Info("a key for sealing was added", "keys", len(reply.Keys))
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply)
}

func askKeys(ctx context.Context, h Holder, q KeysRequest) ([]SealKey, error) {
	request, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	body, err := control(ctx, h, http.MethodPost, "/seal-keys", bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var reply keysReply
	if err := json.NewDecoder(body).Decode(&reply); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed", h)
	}
	if reply.Keys == nil {
		return nil, reply.error()
	}
	return reply.Keys, nil
}
