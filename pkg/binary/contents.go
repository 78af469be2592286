package binary

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/query"
)

// State says what is about to happen to a content.
type State string

// The states of an entry.
const (
	Candidate State = "candidate" // to be looked at when it is due
	Condemned State = "condemned" // goes unless a record names it
	Deleting  State = "deleting"  // goes
)

// Entry is what the store Contents holds of a content.
type Entry struct {
	Service, Hash string
	State         State
	Due           time.Time // when somebody is to go on with it

	// mark is the revision of the entry, or of the deletion of the one before:
	// any change of any entry of the content changes it. 0 when there was none
	// for as long as deletions are remembered.
	mark uint64
}

// ContentsOptions are those of the store Contents.
func ContentsOptions(name string) store.Options {
	return store.Options{Name: name, Indexes: []query.Index{{Name: "due", Fields: []string{"due"}}}}
}

// Due returns a page of the entries of all services that were due at a time.
// next is where the next page begins, "" when this is the last.
func Due(ctx context.Context, contents *store.Store, at time.Time, cursor string, limit int) (entries []Entry, next string, err error) {
	page, err := contents.List(ours(ctx), store.ListOptions{
		Filter: `due <= "` + timestamp(at) + `"`, Sort: "due", Limit: limit, Cursor: cursor,
	})
	for _, o := range page.Objects {
		if e, err := decodeEntry(o); err == nil {
			entries = append(entries, e)
		}
	}
	return entries, page.Next, err
}

// ours is a context in which the program itself uses a store, for whomever.
func ours(ctx context.Context) context.Context {
	return store.WithCall(ctx, store.Call{Origin: event.OriginSweep})
}

// ledger is the entries of one service. Each act reports Mismatch when somebody
// else has changed the entry meanwhile.
type ledger struct {
	store   *store.Store
	service string
}

func (l ledger) uuid(hash string) string { return l.service + "." + hash }

// get reads an entry; one without a state is none.
func (l ledger) get(ctx context.Context, hash string) (Entry, error) {
	if !driver.ValidHash(hash) {
		return Entry{}, errs.New(errs.Internal, "%q is no hash", hash)
	}
	for {
		o, err := l.store.Get(ours(ctx), l.uuid(hash))
		if err == nil {
			return decodeEntry(o)
		}
		if !errors.Is(err, errs.NotFound) {
			return Entry{}, err
		}
		mark, gone, err := l.store.Deleted(ours(ctx), l.uuid(hash))
		if err != nil || gone || mark == 0 {
			return Entry{Service: l.service, Hash: hash, mark: mark}, err
		}
		// It has been made meanwhile.
	}
}

// set changes an entry from what it was when it was read.
func (l ledger) set(ctx context.Context, e Entry, state State, due time.Time) (Entry, error) {
	fields := object.Object{}
	fields.Set("state", state)
	fields.Set("due", timestamp(due))
	var o store.Stored
	var err error
	if e.State == "" {
		fields.Set("service", e.Service)
		fields.Set("hash", e.Hash)
		o, err = l.store.Save(ours(ctx), fields, l.uuid(e.Hash))
	} else {
		o, err = l.store.Update(ours(ctx), fields, store.UpdateOptions{UUID: l.uuid(e.Hash), If: e.mark})
	}
	if err != nil {
		return Entry{}, overtaken(err)
	}
	return decodeEntry(o)
}

// drop takes an entry away.
func (l ledger) drop(ctx context.Context, e Entry) error {
	return overtaken(l.store.Delete(ours(ctx), l.uuid(e.Hash), e.mark))
}

func overtaken(err error) error {
	switch {
	case errors.Is(err, errs.NotFound), errors.Is(err, errs.Exists), errors.Is(err, errs.Conflict):
		return errs.Wrap(err, errs.Mismatch, "somebody else has gone on with the content")
	default:
		return err
	}
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
	e.Due, err = time.Parse(time.RFC3339Nano, due)
	return e, errs.Wrap(err, errs.Internal, "the entry of the content %q can't be read", e.Hash)
}
