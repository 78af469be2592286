package backup

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

const (
	recordPage  = 500
	copiesAtOne = 32 // records that are restored at once

	// A chunk of at least minChunk bytes also ends after one in so many records, by a hash
	// of the UUID. Otherwise one added record would move the ends of all later chunks, and
	// each would be stored again.
	endOneIn = 256
	minChunk = chunkBytes / 8
)

func endsChunk(uuid string, size int) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uuid))
	return size >= chunkBytes || size >= minChunk && h.Sum32()%endOneIn == 0
}

// readStore backs up the records of a store, by any driver. The live records are read
// before the pending events: an event of a record that is not found pending then was
// published before the log is read. Events of later revisions than that of their record
// are left out by the restore.
func (r *run) readStore(ctx context.Context, name string, s driver.Store) (Records, error) {
	out := Records{Store: name}
	c := newChunk(kindRecords)
	for record, err := range driver.Records(ctx, s, recordPage) {
		if err != nil {
			return out, err
		}
		c.record(record)
		out.Objects++
		r.progress(name, out.Objects)
		if endsChunk(record.UUID, len(c.data)) {
			if err := r.flush(ctx, c, &out.Chunks); err != nil {
				return out, err
			}
		}
	}
	if err := r.flush(ctx, c, &out.Chunks); err != nil {
		return out, err
	}
	if lag, ok := s.(driver.IndexLagger); ok {
		if err := backoff.Sleep(ctx, lag.IndexLag()); err != nil {
			return out, errs.Wrap(err, errs.Canceled, "the backup was canceled")
		}
	}
	c = newChunk(kindPending)
	for e, err := range driver.PendingEvents(ctx, s, recordPage) {
		if err != nil {
			return out, err
		}
		if err := c.pending(ctx, s, &e); err != nil {
			return out, err
		}
		if len(c.data) >= chunkBytes {
			if err := r.flush(ctx, c, &out.Pending); err != nil {
				return out, err
			}
		}
	}
	return out, r.flush(ctx, c, &out.Pending)
}

// record adds a live record, or a tombstone.
func (c *chunk) record(r driver.Record) {
	c.text(r.UUID)
	c.number(r.Revision)
	deleted := uint64(0)
	if r.Deleted {
		deleted = 1
	}
	c.number(deleted)
	c.text(r.Owner)
	c.bytes(r.Body)
	c.items++
}

func (c *cursor) record() driver.Record {
	r := driver.Record{UUID: c.text(), Revision: c.number(), Deleted: c.number() == 1, Owner: c.text(), Body: c.bytes()}
	if r.Deleted {
		r.Body = nil
	}
	return r
}

// pending adds an event, with the tombstone of its record if it is deleted: live records
// are in the other chunks.
func (c *chunk) pending(ctx context.Context, s driver.Store, e *driver.Pending) error {
	record, found, err := s.Get(ctx, e.UUID)
	if err != nil {
		return err
	}
	if !found || !record.Deleted {
		record = driver.Record{}
	}
	c.text(e.UUID)
	c.number(e.Revision)
	c.text(e.ID)
	c.text(e.Subject)
	c.bytes(e.Payload)
	c.record(record)
	return nil
}

// outboxes are the pending events and the tombstones of a store that is restored.
type outboxes struct {
	events     map[string][]driver.Pending
	tombstones map[string]driver.Record
}

func (r *restore) readOutboxes(ctx context.Context, of Records) (*outboxes, error) {
	o := &outboxes{events: map[string][]driver.Pending{}, tombstones: map[string]driver.Record{}}
	for _, p := range of.Pending {
		err := r.from.readChunk(ctx, &r.codec, "pending events of "+of.Store, kindPending, p, func(c *cursor) error {
			e := driver.Pending{UUID: c.text(), Revision: c.number(),
				Event: driver.Event{ID: c.text(), Subject: c.text(), Payload: c.bytes()}}
			t := c.record()
			if c.err == nil && (!object.ValidUUID(e.UUID) || !belongs(e.Subject, bus.StreamEvents) ||
				t.Deleted && (t.UUID != e.UUID || !possible(t))) {
				return r.from.lost("pending events of "+of.Store, p,
					"has an event that no store has: "+strconv.Quote(e.Subject))
			}
			if t.Deleted {
				o.tombstones[e.UUID] = t
			}
			o.events[e.UUID] = append(o.events[e.UUID], e)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return o, nil
}

// upTo returns the pending events of a record, without those of later writes.
func (o *outboxes) upTo(record driver.Record) []driver.Pending {
	all := o.events[record.UUID]
	slices.SortFunc(all, func(a, b driver.Pending) int { return cmp.Compare(a.Revision, b.Revision) })
	return slices.DeleteFunc(all, func(e driver.Pending) bool { return e.Revision > record.Revision })
}

// records restores the records of a store. Records that it has already stay: an earlier
// restore that was interrupted has written them.
func (r *restore) records(ctx context.Context, of Records, to *store.Store) error {
	o, err := r.readOutboxes(ctx, of)
	if err != nil {
		return err
	}
	if err := to.Claims().Renew(ctx); err != nil { // a backup has no claims: they are made again
		return err
	}
	if err := to.Aggregates().Renew(ctx); err != nil { // nor what aggregates are computed of
		return err
	}
	done := int64(0)
	for _, p := range of.Chunks {
		var records []driver.Record
		err := r.from.readChunk(ctx, &r.codec, "records of "+of.Store, kindRecords, p, func(c *cursor) error {
			record := c.record()
			if c.err == nil && !possible(record) {
				return r.from.lost("records of "+of.Store, p,
					"has a record that no store has: "+strconv.Quote(record.UUID))
			}
			if of.Store != r.States || record.UUID != stateUUID {
				records = append(records, record)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := range records {
			delete(o.tombstones, records[i].UUID)
		}
		if err := r.copyRecords(ctx, o, records, to); err != nil {
			return err
		}
		done += int64(len(records))
		r.progress(of.Store, done)
	}
	return r.copyRecords(ctx, o, slices.Collect(maps.Values(o.tombstones)), to)
}

// possible reports whether a store can have a record.
func possible(r driver.Record) bool {
	return object.ValidUUID(r.UUID) && r.Revision > 0 &&
		(r.Deleted || gjson.ValidBytes(r.Body) && gjson.ParseBytes(r.Body).IsObject())
}

func (r *restore) copyRecords(ctx context.Context, o *outboxes, records []driver.Record, to *store.Store) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(copiesAtOne)
	for _, record := range records {
		pending := o.upTo(record)
		g.Go(func() error {
			err := patiently(gctx, func() error {
				_, err := store.NewWorker(to).CopyRecord(gctx, record, pending)
				return err
			})
			if r.Again() && errors.Is(err, errs.Conflict) {
				return nil // the interrupted restore has corrected its mapped arrays
			}
			return err
		})
	}
	return g.Wait()
}

// patiently retries requests that a throttling server refuses.
func patiently(ctx context.Context, do func() error) error {
	began := time.Now()
	for delays := backoff.New(100*time.Millisecond, 5*time.Second); ; {
		err := do()
		if err == nil || errs.KindOf(err) != errs.Unavailable || time.Since(began) > time.Minute ||
			delays.Wait(ctx) != nil {
			return err
		}
	}
}
