package store

import (
	"context"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Copy puts a record of another backend here as it is: body, revision, and the
// events that wait in it. Nothing is judged, announced or told anew. It reports
// whether there was something to do: a record that is here at this revision
// stays. Conflict when the one that is here is newer.
func (s *Store) Copy(ctx context.Context, r driver.Record, waiting []driver.Pending) (bool, error) {
	w := driver.Write{UUID: r.UUID, Revision: r.Revision, Body: r.Body}
	if r.Body != nil {
		w.Keys = s.keys(r.UUID, r.Body)
	}
	for i, e := range waiting {
		if i == 0 {
			w.Event = e.Event
		} else {
			w.Also = append(w.Also, e.Event)
		}
	}
	for range maxTries {
		err := s.driver.Put(ctx, w)
		if !errs.Is(err, errs.Mismatch) {
			return err == nil, err
		}
		there, found, err := s.driver.Get(ctx, r.UUID)
		switch {
		case err != nil:
			return false, err
		case !found:
			w.If = 0
		case there.Revision == r.Revision:
			return false, nil
		case there.Revision > w.First():
			return false, errs.New(errs.Conflict, "%s has %q at a newer revision already: it is in use", s.Name, r.UUID)
		case there.Deleted:
			w.If = 0
		default:
			w.If = there.Revision
		}
	}
	return false, s.contended(r.UUID)
}
