package store

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// copiedEvents is how many events a copy brings along in one write: backends
// have limits, and an object may have gathered many while the bus was away.
const copyEventBatch = 100

// Copy puts a record of another backend here as it is: body, revision, and the
// events that wait in it, in the order of their revisions. Nothing is judged,
// announced or told anew. It reports whether there was something to do: a
// record that is here at this revision stays. Of a record that is here at a
// lower revision the earlier events have come already. Conflict when the one
// that is here is newer.
func (s *Store) Copy(ctx context.Context, r driver.Record, waiting []driver.Pending) (bool, error) {
	var here driver.Record
	for tries := 0; tries < maxAttempts; {
		w := s.nextCopy(r, waiting, here)
		err := s.driver.Put(ctx, w)
		switch {
		case err == nil && w.Revision == r.Revision:
			return true, nil
		case err == nil:
			here = driver.Record{Revision: w.Revision, Body: w.Body, Deleted: r.Deleted}
			continue
		case !errors.Is(err, errs.Mismatch):
			return false, err
		}
		tries++
		if here, _, err = s.driver.Get(ctx, r.UUID); err != nil {
			return false, err
		}
		if here.Revision == r.Revision {
			return false, nil
		}
		if here.Revision > r.Revision {
			return false, errs.New(errs.Conflict, "%s has %q at a newer revision already: it is in use", s.Name, r.UUID)
		}
	}
	return false, s.contended(r.UUID)
}

// copyOf is the next write of a copy over what is here. When there are many
// events it ends at the revision of one of them, and another has to follow.
func (s *Store) nextCopy(r driver.Record, waiting []driver.Pending, here driver.Record) driver.Write {
	w := driver.Write{UUID: r.UUID, Revision: r.Revision, Body: r.Body}
	if r.Body != nil {
		w.Keys = s.keys(r.UUID, r.Body)
	}
	if here.Revision > 0 && !here.Deleted {
		w.IfRevision = here.Revision
	}
	// Revisions of events are distinct and not above the record's. So with
	// those above what is here there is room for the revisions they get here.
	for len(waiting) > 0 && waiting[0].Revision <= here.Revision {
		waiting = waiting[1:]
	}
	if len(waiting) > copyEventBatch {
		waiting = waiting[:copyEventBatch]
		w.Revision = waiting[copyEventBatch-1].Revision
	}
	for i, e := range waiting {
		if i == 0 {
			w.Event = e.Event
		} else {
			w.ExtraEvents = append(w.ExtraEvents, e.Event)
		}
	}
	return w
}
