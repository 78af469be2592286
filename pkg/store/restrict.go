package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"belfry/internal/backoff"
	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// ErrRestricted is in the Conflict of a deletion of an object that others name, by a reference that restricts it.
var ErrRestricted = errors.New("restricted")

// errUnmarked is that an object no longer has the mark of its deletion.
var errUnmarked = errors.New("another write has removed the mark of the deletion")

// restrictions are the references that restrict deletions in a store. Without transactions, a deletion marks its
// object, looks for objects that name it, and then deletes it, unless another write has removed the mark.
type restrictions struct {
	*writer
	references []Referring
	call       Call
}

// restricting returns the restrictions of the deletions of a call; nil without any. A cascade overrides them.
func (w *writer) restricting(call Call) *restrictions {
	set := w.peers.set.Load()
	if set == nil || call.Origin == event.OriginCascade {
		return nil
	}
	references := set.Referring(w.name, OnDeleteRestrict)
	if len(references) == 0 {
		return nil
	}
	return &restrictions{writer: w, references: references, call: call}
}

// delete deletes an object that no other one names. Errors: those of Store.Delete; Conflict with ErrRestricted.
func (r *restrictions) delete(ctx context.Context, uuid string, ifRevision uint64, also []ExtraEvent) error {
	for range maxAttempts {
		marked, err := r.mark(ctx, uuid, ifRevision)
		if errors.Is(err, errUnmarked) {
			continue
		}
		if err != nil {
			return err
		}
		made := markOf(marked.Body)
		if made.revision != 0 {
			err = r.await(ctx, uuid)
		}
		if err == nil {
			err = r.remove(ctx, uuid, ifRevision, also, &marked)
		}
		if errors.Is(err, errUnmarked) {
			continue
		}
		if err != nil && made.revision != 0 {
			r.giveUp(ctx, uuid, made)
		}
		return err
	}
	return r.contended(uuid)
}

// await returns the error of a marked object that others name, once the indexes have what was written before the mark.
func (r *restrictions) await(ctx context.Context, uuid string) error {
	var lag time.Duration
	for i := range r.references {
		if s := r.peers.store(r.references[i].Source); s != nil {
			lag = max(lag, s.IndexLag())
		}
	}
	if lag > 0 {
		if err := backoff.Sleep(ctx, lag); err != nil {
			return err
		}
	}
	return r.check(ctx, uuid)
}

// giveUp removes the mark of a deletion that is refused.
func (r *restrictions) giveUp(ctx context.Context, uuid string, made mark) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	if err := r.unmark(ctx, uuid, made); err != nil {
		r.log.WarnContext(ctx, "the mark of a deletion that was refused stays: until it expires, writes that name the "+
			"object are refused", "store", r.name, "uuid", uuid, "expires", markLife, "error", err)
	}
}

// mark marks an object that the caller may delete and that no other one names, as far as the indexes say, and returns
// its record. It returns the zero record where there is nothing to delete: removing the object says why. errUnmarked:
// another write came first.
func (r *restrictions) mark(ctx context.Context, uuid string, ifRevision uint64) (driver.Record, error) {
	record, found, err := r.driver.Get(ctx, uuid)
	if err != nil || !found || record.Deleted {
		return driver.Record{}, err
	}
	if once := r.call.Idempotency; once != nil {
		if done, err := once.check(r.name, uuid, record, found); done || err != nil {
			return driver.Record{}, nil //nolint:nilerr // removing the object returns the error
		}
		if once.Revision != 0 && record.Revision+1 >= once.Revision {
			return driver.Record{}, errStale(r.name, uuid)
		}
	}
	if err := r.mayDelete(ctx, r.call, record); err != nil {
		return driver.Record{}, err
	}
	if err := checkRevision(record, ifRevision); err != nil {
		return driver.Record{}, err
	}
	if err := r.check(ctx, uuid); err != nil {
		return driver.Record{}, err
	}
	now := r.now()
	if markOf(record.Body).isFresh(now.Add(markLife / 2)) {
		return record, nil // of another deletion, which may have crashed
	}
	marked, err := r.setMark(ctx, record, mark{revision: record.Revision + 1, made: now})
	if errors.Is(err, errs.Mismatch) {
		err = errUnmarked
	}
	return marked, err
}

// checkMark returns errUnmarked unless a record has the mark of a marked one, and the revision at which a deletion
// expects the record: the mark has made it another one.
func checkMark(record, marked driver.Record, ifRevision uint64) (uint64, error) {
	if now := markOf(record.Body); now.revision == 0 || now.revision != markOf(marked.Body).revision {
		return 0, errUnmarked
	}
	if ifRevision != 0 {
		ifRevision = marked.Revision
	}
	return ifRevision, nil
}

// maxCounted is how many of the objects of a store that name one are counted at most.
const maxCounted = 100

// counted is how many objects of a store name an object.
type counted struct {
	store string
	seen  map[string]bool // by uuid: the caller may get it
	more  bool
}

// visible returns how many of the objects the caller may get.
func (c *counted) visible() (n int) {
	for _, ok := range c.seen {
		if ok {
			n++
		}
	}
	return n
}

// check returns Conflict with ErrRestricted if objects name an object. It says how many of those that the caller may
// get. It reads them by an index, and each again: an index may have objects that no longer name it.
func (r *restrictions) check(ctx context.Context, uuid string) error {
	var all []*counted
	for i := range r.references {
		ref := &r.references[i]
		at := slices.IndexFunc(all, func(c *counted) bool { return c.store == ref.Source })
		if at < 0 {
			at, all = len(all), append(all, &counted{store: ref.Source, seen: map[string]bool{}})
		}
		if err := r.count(ctx, ref, uuid, all[at]); err != nil {
			return err
		}
	}
	all = slices.DeleteFunc(all, func(c *counted) bool { return len(c.seen) == 0 })
	if len(all) == 0 {
		return nil
	}
	return errs.Wrap(ErrRestricted, errs.Conflict,
		"%s %q can't be deleted, because %s: delete them first, or change what they name", r.name, uuid, describe(all))
}

// describe says how many objects name an object.
func describe(all []*counted) string {
	var parts []string
	for _, c := range all {
		n := c.visible()
		switch {
		case n == 0:
		case c.more:
			parts = append(parts, fmt.Sprintf("%d or more objects of %s", n, c.store))
		default:
			parts = append(parts, count.Of(n, "object")+" of "+c.store)
		}
	}
	if len(parts) == 0 {
		return "other objects name it"
	}
	if parts[0] == "1 object of "+all[0].store && len(parts) == 1 {
		return parts[0] + " names it"
	}
	return strings.Join(parts, " and ") + " name it"
}

// count adds the objects that name one by a reference.
func (r *restrictions) count(ctx context.Context, ref *Referring, uuid string, to *counted) error {
	source := r.peers.store(ref.Source)
	if source == nil {
		return errs.New(errs.Internal, "the store %s is not open", ref.Source)
	}
	for _, key := range []string{uuid, releasedKey(uuid)} {
		if err := r.countBy(ctx, source, ref, uuid, key, to); err != nil || to.more {
			return err
		}
	}
	return nil
}

// countBy is count of the objects with a key in the index of the reference.
func (r *restrictions) countBy(
	ctx context.Context, source *Store, ref *Referring, uuid, key string, to *counted,
) error {
	for found, err := range InChunks(source.Linked(ctx, ref.Field, key, maxCounted), maxChunk, 0) {
		if err != nil {
			return err
		}
		var some []string
		for _, x := range found {
			if _, seen := to.seen[x.UUID]; !seen && (ref.Source != r.name || x.UUID != uuid) {
				some = append(some, x.UUID)
			}
		}
		if err := r.countSome(ctx, source, ref, uuid, some, to); err != nil || to.more {
			return err
		}
	}
	return nil
}

// countSome is countBy of some of the objects, which are read together.
func (r *restrictions) countSome(
	ctx context.Context, source *Store, ref *Referring, uuid string, some []string, to *counted,
) error {
	if len(some) == 0 {
		return nil
	}
	records, err := source.reread(ctx, some)
	if err != nil {
		return err
	}
	for _, record := range records {
		if names, err := source.names(ctx, ref, record, uuid); err != nil {
			return err
		} else if !names {
			continue
		}
		if len(to.seen) == maxCounted {
			to.more = true
			return nil
		}
		to.seen[record.UUID], err = r.mayCount(ctx, source, ref, record)
		if errors.Is(err, policy.ErrBudget) {
			to.more = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reread returns the records of those of some objects that exist, by one request if the backend can. Others are read
// one after the other: driver.GetMany would read them at once, which the checker of models can't follow.
func (s *Store) reread(ctx context.Context, uuids []string) (all []driver.Record, err error) {
	if many, ok := s.core.driver.(driver.ManyGetter); ok {
		return many.GetMany(ctx, uuids)
	}
	for _, uuid := range uuids {
		record, found, err := s.core.driver.Get(ctx, uuid)
		if err != nil {
			return nil, err
		}
		if found && !record.Deleted {
			all = append(all, record)
		}
	}
	return all, nil
}

// names reports whether an object names another one by a reference, or may do so again.
func (s *Store) names(ctx context.Context, ref *Referring, record driver.Record, uuid string) (bool, error) {
	if slices.Contains(KeyTargets(object.Field(record.Body, ref.Field)), uuid) {
		return true, nil
	}
	if !slices.Contains(releasedIn(record.Body, ref.Field), uuid) {
		return false, nil
	}
	return s.writer.mayReturn(ctx, record)
}

// mayCount reports whether a caller may get an object, and read by what it names another one.
func (r *restrictions) mayCount(ctx context.Context, s *Store, ref *Referring, record driver.Record) (bool, error) {
	if !r.call.Client {
		return true, nil
	}
	if !ref.Counted {
		return false, nil
	}
	ok, err := s.reader.gettable(ctx, record, true)
	if err != nil || !ok {
		return false, err
	}
	return s.core.rules.MayRead(ctx, r.call.caller(), ref.Field, record.Body)
}
