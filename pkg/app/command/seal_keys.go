package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// The object that holds the keys, and its fields, which no export and no reply contains. An object whose key was never
// changed has one key. A belfry of an earlier release reads only that one.
const (
	SealKeyUUID   = "current"
	SealKeyField  = "_key"
	SealKeysField = "_keys" // all keys, oldest first
)

const (
	// SealKeysInterval is how often a process reads the keys. It is less than the time after which a new key is used.
	SealKeysInterval = 5 * time.Second
	// SealKeyDelay is the time after which a new key is used.
	SealKeyDelay = time.Minute
	// MaxSealKeys is the maximum number of keys.
	MaxSealKeys = 16
)

// StoredKey is a key as it is stored.
type StoredKey struct {
	Key   []byte     `json:"key"`
	From  *time.Time `json:"from,omitempty"`
	Until *time.Time `json:"until,omitempty"`
}

// ReadSealKeys replaces the keys of a sealer by the stored ones.
func ReadSealKeys(ctx context.Context, s *store.Store, sealer *seal.Sealer) error {
	stored, err := s.Get(ctx, SealKeyUUID)
	if err != nil {
		return err
	}
	keys, err := SealKeysOf(stored)
	if err != nil {
		return err
	}
	return sealer.SetKeys(keys)
}

// LoadSealer reads the keys, or creates the first one. If several processes do so at once, the first one creates it for
// all.
func LoadSealer(ctx context.Context, s *store.Store) (*seal.Sealer, error) {
	stored, err := s.Get(ctx, SealKeyUUID)
	if errors.Is(err, errs.NotFound) {
		o := object.Object{}
		o.Set(SealKeyField, seal.NewKey())
		if stored, err = s.Save(ctx, o, SealKeyUUID); errors.Is(err, errs.Exists) {
			stored, err = s.Get(ctx, SealKeyUUID)
		}
	}
	if err != nil {
		return nil, err
	}
	keys, err := SealKeysOf(stored)
	if err != nil {
		return nil, err
	}
	return seal.NewWithKeys(keys, time.Now)
}

// SealKeysOf returns the keys of the object, oldest first.
func SealKeysOf(stored store.Stored) ([]seal.Key, error) {
	field, found := SealKeysField, []StoredKey{}
	text := object.Field(stored.Body, SealKeysField)
	broken := text != nil && json.Unmarshal(text, &found) != nil
	if text == nil {
		field, found = SealKeyField, make([]StoredKey, 1)
		broken = json.Unmarshal(object.Field(stored.Body, SealKeyField), &found[0].Key) != nil
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
		return nil, errs.New(errs.Internal, "the object %s of store %s has no key in %s: restore it from a backup, "+
			"or delete it, and the next start creates another",
			SealKeyUUID, config.SealKeyStore, field)
	}
	return keys, nil
}

// AddSealKey adds a key, which is used after sealKeyDelay. Texts that the earlier keys have sealed can be opened for
// the time keep after that. Ended keys are removed.
func AddSealKey(ctx context.Context, s *store.Store, now time.Time, keep time.Duration) (keys []seal.Key, err error) {
	if _, err := LoadSealer(ctx, s); err != nil { // creates the first
		return nil, err
	}
	_, err = s.Mutate(ctx, SealKeyUUID, func(stored store.Stored) (store.Mutation, error) {
		all, err := SealKeysOf(stored)
		if err != nil {
			return store.Mutation{}, err
		}
		keys = nil
		from := now.Add(SealKeyDelay).UTC().Truncate(time.Second)
		until := from.Add(keep)
		for _, k := range all {
			if k.Until.IsZero() || k.Until.After(until) {
				k.Until = until
			}
			if !k.Ended(now) {
				keys = append(keys, k)
			}
		}
		if len(keys) == MaxSealKeys {
			return store.Mutation{}, errs.New(errs.Exists, "there are already %d keys; wait until one has ended, or "+
				"end the earlier ones sooner with a shorter --keep", MaxSealKeys)
		}
		keys = append(keys, seal.Key{Secret: seal.NewKey(), From: from})
		return store.Mutation{Fields: sealKeyFields(keys)}, nil
	})
	return keys, err
}

// renewSealKeys replaces all keys by a new one, so texts that were sealed before can no longer be opened. After a
// restore the log is a new one, in which a client's former position has another meaning.
func renewSealKeys(ctx context.Context, s *store.Store) error {
	_, err := s.Mutate(ctx, SealKeyUUID, func(store.Stored) (store.Mutation, error) {
		o := object.Object{SealKeysField: nil}
		o.Set(SealKeyField, seal.NewKey())
		return store.Mutation{Fields: o}, nil
	})
	if errors.Is(err, errs.NotFound) {
		return nil // the first start creates one
	}
	return err
}

// sealKeyFields are the fields of the object. A process of an earlier release reads only the first key, at its start.
// It seals with that key, which the other processes still open, and it opens their texts while they still seal with it.
func sealKeyFields(keys []seal.Key) object.Object {
	var all []StoredKey
	for _, k := range keys {
		next := StoredKey{Key: k.Secret}
		if !k.From.IsZero() {
			next.From = &k.From
		}
		if !k.Until.IsZero() {
			next.Until = &k.Until
		}
		all = append(all, next)
	}
	o := object.Object{}
	o.Set(SealKeysField, all)
	o.Set(SealKeyField, keys[0].Secret)
	return o
}

// SealKey is the shown part of a key for sealing, without the key itself.
type SealKey struct {
	From    *time.Time `json:"from,omitempty"`  // nil: since the first start
	Until   *time.Time `json:"until,omitempty"` // nil: without an end
	Current bool       `json:"current"`         // texts are sealed with it now
}

// KeysRequest adds a key, or only lists them.
type KeysRequest struct {
	Rotate bool `json:"rotate,omitempty"`
	// how long texts of the earlier keys can be opened; nil: as long as the log keeps events
	Keep *time.Duration `json:"keep,omitempty"`
}

// Keys lists the keys for sealing, after it has added one if that is requested. Errors: Invalid, Exists (there are too
// many), Unavailable.
var Keys = Operation[KeysRequest, []SealKey, none]{
	Name: "keys",
	Run: func(ctx context.Context, at *Place, q KeysRequest, _ func(none)) (*[]SealKey, error) {
		if q.Keep == nil {
			q.Keep = &at.Plan.Config.Bus.Events.MaxAge
		}
		keys, err := manageKeys(ctx, at.Set.Store(config.SealKeyStore), q)
		if err == nil && q.Rotate && at.Log != nil {
			at.Log.Info("a key for sealing was added", "keys", len(keys))
		}
		return &keys, err
	},
	Commands: []Command[KeysRequest, []SealKey]{
		{Words: "seal-keys list", Help: "List the keys, without showing them.", Flags: &keysFlags{}},
		{Words: "seal-keys rotate",
			Help:  "Add a key. It is used after a minute; the earlier keys still open their texts for a time.",
			Flags: &rotateFlags{}},
	},
}

type keysFlags struct{ linesFlag }

// Request implements Flags.
func (f *keysFlags) Request(context.Context, Streams) (KeysRequest, error) { return KeysRequest{}, nil }

// Print implements Flags.
func (f *keysFlags) Print(s Streams, keys *[]SealKey) error {
	if f.JSON {
		return writeLinesOf(s.Out, *keys)
	}
	t := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FROM\tUNTIL\tCURRENT")
	for _, k := range *keys {
		fmt.Fprintf(t, "%s\t%s\t%t\n", orDash(k.From), orDash(k.Until), k.Current)
	}
	return t.Flush()
}

func orDash(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.Format(time.RFC3339)
}

type rotateFlags struct {
	keysFlags
	Keep *time.Duration `help:"How long cursors and ids that the earlier keys have sealed stay valid; 0s: not at all. Default: as long as the log keeps events (bus.events.maxAge)." placeholder:"DURATION"`
}

// Request implements Flags.
func (f *rotateFlags) Request(context.Context, Streams) (KeysRequest, error) {
	if f.Keep != nil && *f.Keep < 0 {
		return KeysRequest{}, errs.New(errs.Invalid, "--keep: %s is negative", *f.Keep)
	}
	return KeysRequest{Rotate: true, Keep: f.Keep}, nil
}

// manageKeys lists the keys of an open store.
func manageKeys(ctx context.Context, s *store.Store, q KeysRequest) (shown []SealKey, err error) {
	var keys []seal.Key
	now := time.Now()
	if q.Rotate {
		keys, err = AddSealKey(ctx, s, now, *q.Keep)
	} else {
		var stored store.Stored
		if stored, err = s.Get(ctx, SealKeyUUID); errors.Is(err, errs.NotFound) {
			return []SealKey{}, nil // the first start creates one
		}
		if err == nil {
			keys, err = SealKeysOf(stored)
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
