package binary

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
)

// State is the state of a content that may be deleted. The values are those of
// the stored entries.
type State string

// The states of an entry.
const (
	Candidate         State = "candidate" // checked for references once it is due
	MarkedForDeletion State = "condemned" // deleted unless a reference is found
	Deleting          State = "deleting"
)

// Entry is the entry of a content in the store Contents.
type Entry struct {
	Service, Hash string
	State         State
	Due           time.Time // when a sweeper takes the next step

	// mark is the revision of the entry or, if no entry exists, the revision of the last
	// deletion: every change of the content's entry changes it. It is 0 if no entry has
	// existed for as long as tombstones are kept.
	mark uint64
}

// ErrMalformedEntry is in the error about an entry that can't be decoded. Until
// somebody deletes the entry, its content can be neither uploaded nor deleted.
var ErrMalformedEntry = errors.New("malformed entry")

// ContentsOptions are the options with which the store Contents is opened.
func ContentsOptions(name string) store.Options {
	return store.Options{Name: name, Indexes: []query.Index{{Name: "due", Fields: []string{"due"}}}}
}

// DuePage is a page of entries that are due.
type DuePage struct {
	Entries   []Entry
	Malformed []error // an ErrMalformedEntry for each entry that can't be decoded
}

// Due iterates over pages of the entries of all services that share the store
// Contents and are due when Due is called. It ends with the first error.
func (s *Service) Due(ctx context.Context, pageSize int) iter.Seq2[DuePage, error] {
	return s.dueAt(ctx, s.now(), pageSize)
}

func (s *Service) dueAt(ctx context.Context, at time.Time, pageSize int) iter.Seq2[DuePage, error] {
	return func(yield func(DuePage, error) bool) {
		options := store.ListOptions{Filter: `due <= "` + timestamp(at) + `"`, Sort: "due", Limit: pageSize}
		for {
			page, err := s.entries.store.List(internal(ctx), options)
			if err != nil {
				yield(DuePage{}, err)
				return
			}
			if !yield(s.entries.decodeAll(page.Objects), nil) || page.Next == "" {
				return
			}
			options.Cursor = page.Next
		}
	}
}

// internal is a context in which a store is used without a client's rights.
func internal(ctx context.Context) context.Context {
	return store.WithCall(ctx, store.Call{Origin: event.OriginSweep})
}

// entryTable holds the entries of one service. Its writes are compare-and-set:
// Mismatch when the entry has been changed since it was read.
type entryTable struct {
	store   *store.Store
	service string
}

func entryUUID(service, hash string) string { return service + "." + hash }

// get reads an entry. If it does not exist, get returns an entry without a state.
func (t entryTable) get(ctx context.Context, hash string) (Entry, error) {
	if !driver.ValidHash(hash) {
		return Entry{}, errs.New(errs.Internal, "%q is not a SHA-256 in lower-case hexadecimal", hash)
	}
	uuid := entryUUID(t.service, hash)
	for {
		o, err := t.store.Get(internal(ctx), uuid)
		if err == nil {
			return t.decode(o)
		}
		if !errors.Is(err, errs.NotFound) {
			return Entry{}, err
		}
		mark, deleted, err := t.store.Deleted(internal(ctx), uuid)
		if err != nil || deleted || mark.Revision == 0 {
			return Entry{Service: t.service, Hash: hash, mark: mark.Revision}, err
		}
		// It was created between the two reads.
	}
}

// set changes an entry, or creates one that get did not find.
func (t entryTable) set(ctx context.Context, e Entry, state State, due time.Time) (Entry, error) {
	fields := object.Object{}
	fields.Set("state", state)
	fields.Set("due", timestamp(due))
	uuid := entryUUID(e.Service, e.Hash)
	var o store.Stored
	var err error
	if e.State == "" {
		fields.Set("service", e.Service)
		fields.Set("hash", e.Hash)
		o, err = t.store.Save(internal(ctx), fields, uuid)
	} else {
		o, err = t.store.Update(internal(ctx), fields, store.UpdateOptions{UUID: uuid, If: e.mark})
	}
	if err != nil {
		return Entry{}, superseded(err)
	}
	return t.decode(o)
}

func (t entryTable) delete(ctx context.Context, e Entry) error {
	return superseded(t.store.Delete(internal(ctx), entryUUID(e.Service, e.Hash), e.mark))
}

// superseded makes one kind of all errors that say that the entry has changed.
func superseded(err error) error {
	switch {
	case errors.Is(err, errs.NotFound), errors.Is(err, errs.Exists), errors.Is(err, errs.Conflict):
		return errs.Wrap(err, errs.Mismatch, "another process has changed the entry of the content")
	default:
		return err
	}
}

func (t entryTable) decode(o store.Stored) (Entry, error) {
	e, err := decodeEntry(o)
	if err == nil {
		return e, nil
	}
	return e, errs.Wrap(fmt.Errorf("%w: %w", ErrMalformedEntry, err), errs.Internal,
		"the entry %q of the store %s can't be decoded and keeps its content: delete the entry", o.UUID, t.store.Name())
}

func (t entryTable) decodeAll(objects []store.Stored) (page DuePage) {
	for _, o := range objects {
		if e, err := t.decode(o); err != nil {
			page.Malformed = append(page.Malformed, err)
		} else {
			page.Entries = append(page.Entries, e)
		}
	}
	return page
}

func decodeEntry(o store.Stored) (Entry, error) {
	decoded, err := o.Object()
	if err != nil {
		return Entry{}, err
	}
	e := Entry{mark: o.Revision}
	e.Service, _ = decoded.Text("service")
	e.Hash, _ = decoded.Text("hash")
	state, _ := decoded.Text("state")
	e.State = State(state)
	due, _ := decoded.Text("due")
	switch e.State {
	case Candidate, MarkedForDeletion, Deleting:
	default:
		return e, errs.New(errs.Internal, "the state %q is unknown", state)
	}
	if !driver.ValidHash(e.Hash) || o.UUID != entryUUID(e.Service, e.Hash) {
		return e, errs.New(errs.Internal, "it has the service %q and the hash %q", e.Service, e.Hash)
	}
	e.Due, err = time.Parse(time.RFC3339Nano, due)
	return e, err
}
