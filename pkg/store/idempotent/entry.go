package idempotent

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
)

// KeyRetention is how long a key is stored.
const KeyRetention = store.IdempotencyRetention

// expires is the field by which DeleteExpired finds expired keys.
const expires = "expires"

// RequestsOptions are the options of the store of requests. Its writes make no
// events.
func RequestsOptions(name string) store.Options {
	return store.Options{Name: name, NoEvents: true, Indexes: []query.Index{{Name: expires, Fields: []string{expires}}}}
}

// entry is the record of a key in the store of requests. The names of its stored fields
// are fixed.
type entry struct {
	stored store.Stored

	fingerprint string   // of the request, to detect another one with the same key
	uuid        string   // of the object that the request applies to
	revision    uint64   // for Save and Delete: that of the write's record
	earlier     []uint64 // revisions of earlier attempts
	incarnation string   // of the object to update or delete
	owner       string   // the executor that claimed it last
	claimedAt   time.Time
	expires     time.Time
	reply       *Reply // nil: pending
}

// replay returns the stored reply.
func (e *entry) replay() Reply {
	o := *e.reply
	o.Replayed = true
	return o
}

func (e *entry) fields() object.Object {
	o := object.Object{}
	o.Set("print", e.fingerprint)
	o.Set("object", e.uuid)
	o.Set("revision", strconv.FormatUint(e.revision, 10))
	o.Set("earlier", e.earlier)
	o.Set("life", e.incarnation)
	o.Set("owner", e.owner)
	o.Set("noted", object.FormatTime(e.claimedAt))
	o.Set(expires, object.FormatTime(e.expires))
	if e.reply != nil {
		o.Set("status", e.reply.Status)
		o.Set("text", e.reply.Text)
		if e.reply.Tag != "" {
			o.Set("tag", e.reply.Tag)
		}
		o["body"] = json.RawMessage(e.reply.Body)
	}
	return o
}

func decodeEntry(s store.Stored) (*entry, error) {
	var f struct {
		Print, Object, Revision, Life, Owner, Noted, Expires, Text, Tag string

		Earlier []uint64
		Status  int
		Body    json.RawMessage
	}
	if err := json.Unmarshal(s.Body, &f); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "idempotent: the entry of key %s can't be decoded", s.UUID)
	}
	e := &entry{stored: s, fingerprint: f.Print, uuid: f.Object, earlier: f.Earlier, incarnation: f.Life,
		owner: f.Owner}
	var err error
	if e.revision, err = strconv.ParseUint(f.Revision, 10, 64); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "idempotent: the entry of key %s has no valid revision", s.UUID)
	}
	e.claimedAt, _ = time.Parse(object.TimeFormat, f.Noted)
	e.expires, _ = time.Parse(object.TimeFormat, f.Expires)
	if f.Body != nil {
		e.reply = &Reply{UUID: f.Object, Status: f.Status, Text: f.Text, Tag: f.Tag, Body: f.Body}
	}
	return e, nil
}

// deleteParallel is how many keys are deleted concurrently: one at a time would be
// slower than a busy bus adds them.
const deleteParallel = 16

// DeleteExpired deletes expired keys, at most limit of them, and returns how many.
func (x *Executor) DeleteExpired(ctx context.Context, limit int) (removed int, err error) {
	o := store.ListOptions{Filter: expires + ` < "` + object.FormatTime(x.opts.Now()) + `"`,
		Limit: min(limit, store.MaxPage)}
	for removed < limit {
		list, err := x.opts.Requests.List(ctx, o)
		if err != nil {
			return removed, errs.Wrap(err, errs.KindOf(err), "idempotent: deleting expired keys from %s",
				x.opts.Requests.Name())
		}
		var removing errgroup.Group
		removing.SetLimit(deleteParallel)
		for _, found := range list.Objects {
			removing.Go(func() error { return x.deleteEntry(ctx, found) })
		}
		if err := removing.Wait(); err != nil {
			return removed, err
		}
		removed += len(list.Objects)
		if list.Next == "" {
			break
		}
		o.Cursor = list.Next
	}
	return removed, nil
}

// deleteEntry deletes a key if it is still as it was read.
func (x *Executor) deleteEntry(ctx context.Context, found store.Stored) error {
	err := x.opts.Requests.Delete(ctx, found.UUID, found.Revision)
	if errors.Is(err, errs.NotFound) || errors.Is(err, errs.Mismatch) {
		return nil
	}
	return err
}
