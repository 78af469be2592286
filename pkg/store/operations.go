package store

import (
	"context"
	"iter"

	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// Get returns an object, for a client without the fields it must not see. Only the
// get of a client is announced.
//
// Errors: NotFound for a missing object; Unauthenticated or Denied by the policy.
func (s *Store) Get(ctx context.Context, uuid string) (Stored, error) {
	return s.reader.get(ctx, uuid, true)
}

// GetView is Get of a part of the object, or with the objects that it names. Errors: those of Get; Invalid for a view
// that can't be read; TooLarge for one with too much expanded.
func (s *Store) GetView(ctx context.Context, uuid string, v View) (Stored, error) {
	return s.reader.getView(ctx, uuid, v)
}

// Reread is Get for the reply to another operation of the caller, such as a write
// whose consequences it has waited for. It is not announced.
func (s *Store) Reread(ctx context.Context, uuid string) (Stored, error) {
	return s.reader.get(WithCall(ctx, CallOf(ctx)), uuid, false) // rights may have been lost meanwhile
}

// GetAuthorized returns an object with all its fields, those that clients never
// see included, to a caller who may do an operation with it. input is what the
// rule sees as the input. For policy.Get, an interceptor of reads can refuse.
// Errors: as for Get.
func (s *Store) GetAuthorized(ctx context.Context, uuid string, op policy.Op, input object.Object) (Stored, error) {
	return s.reader.getAuthorized(ctx, uuid, op, input)
}

// Exists reports whether there is an object with this uuid.
func (s *Store) Exists(ctx context.Context, uuid string) (bool, error) {
	record, found, err := s.core.driver.Get(ctx, uuid)
	return found && !record.Deleted, err
}

// Deleted returns the tombstone of an object. It returns false when the object
// exists, with its revision, never existed, or was deleted so long ago that its
// tombstone has been purged.
func (s *Store) Deleted(ctx context.Context, uuid string) (t Tombstone, deleted bool, err error) {
	return s.reader.deleted(ctx, uuid)
}

// Shown returns an object as the caller may see it, who is not asked whether they may get it.
func (s *Store) Shown(ctx context.Context, o Stored) (Stored, error) {
	call := CallOf(ctx)
	record := driver.Record{UUID: o.UUID, Revision: o.Revision, Body: o.Body}
	return s.reader.show(ctx, call, s.core.rules.Reader(ctx, call.caller()), record, nil)
}

// MayRead reports whether the caller may read a field of an object.
func (s *Store) MayRead(ctx context.Context, o Stored, field string) (bool, error) {
	return s.core.rules.MayRead(ctx, CallOf(ctx).caller(), field, o.Body)
}

// Explain explains the decision of the rules about an operation of the caller on an object; input is what a
// creation or an update would send. Values of private fields are left out. Errors: NotFound.
func (s *Store) Explain(
	ctx context.Context, op policy.Op, uuid string, input object.Object,
) (access.Explanation, error) {
	return s.reader.explain(ctx, op, uuid, input)
}

// SettableByAnonymous returns the fields of a new object that a client who is not
// logged in may set. Denied when the write rule of one of them does not hold.
func (s *Store) SettableByAnonymous(ctx context.Context, o object.Object) (object.Object, error) {
	return s.core.rules.SettableByAnonymous(ctx, CallOf(ctx).RuleBudget, o)
}

// ReplyWith returns the part of an object that a client receives if its request led to it otherwise
// than by a write of that object, such as the user of a login: the result of a get.
func (s *Store) ReplyWith(ctx context.Context, o Stored) Stored {
	return s.reader.reply(ctx, driver.Record{UUID: o.UUID, Revision: o.Revision, Body: o.Body})
}

// Reply returns the reply to the caller of the write, from the record: for a client as for Save.
func (s *Store) Reply(ctx context.Context, w WriteStatus) Stored {
	return s.reader.reply(ctx, w.record)
}

// WriteStatus reads the evidence of a record for the write with an ID. Invalid when the write was applied, and an
// object that it names has been deleted before the write was acknowledged.
func (s *Store) WriteStatus(ctx context.Context, uuid, id string) (WriteStatus, error) {
	status, err := s.reader.writeStatus(ctx, uuid, id)
	if err == nil && status.Applied {
		err = s.writer.confirmApplied(ctx, status.record)
	}
	return status, err
}

// Save stores a new object. Its uuid is the one given, else the object's own field uuid, else a new UUIDv7. It returns
// the object as stored, to a client the result of a get: write access does not imply read access. Where a get would
// be refused, a client receives the uuid and the revision alone.
//
// Errors: Invalid (uuid, schema, key), TooLarge, Exists when the uuid is
// taken, Taken when another object has a value that must be unique,
// Unauthenticated or Denied by the policy, Unavailable.
func (s *Store) Save(ctx context.Context, o object.Object, uuid string, also ...ExtraEvent) (Stored, error) {
	record, err := s.writer.create(ctx, o, uuid, also)
	if err != nil {
		return Stored{}, err
	}
	return s.reader.reply(ctx, record), nil
}

// Check returns the error that Save would return, without saving anything. It finds no uuid that is taken, and asks no
// interceptor.
func (s *Store) Check(ctx context.Context, o object.Object, uuid string) error {
	return s.writer.checkCreate(ctx, o, uuid)
}

// Update changes an object and returns it as stored, to a client as for Save.
//
// Errors: NotFound; Mismatch when If does not hold; Invalid, TooLarge, Taken,
// Unauthenticated, Denied as for Save; Conflict when writers in other processes
// kept changing the object; Unavailable.
func (s *Store) Update(ctx context.Context, o object.Object, opts UpdateOptions) (Stored, error) {
	return s.writer.update(ctx, o, opts)
}

// CheckUpdate returns the error that Update would return by the rules, the schema and the limits, without updating
// anything. It finds no value that another object has (Taken), and asks no interceptor. The uuid is that of the
// options.
func (s *Store) CheckUpdate(ctx context.Context, o object.Object, opts UpdateOptions) error {
	return s.writer.checkUpdate(ctx, o, opts)
}

// Delete removes an object. The extra events get the last state of the object. Errors: NotFound; Mismatch when
// ifRevision, if not 0, does not hold; Unauthenticated or Denied; Conflict; Unavailable.
func (s *Store) Delete(ctx context.Context, uuid string, ifRevision uint64, also ...ExtraEvent) error {
	return s.writer.delete(ctx, uuid, ifRevision, also)
}

// CheckDelete returns the error that Delete of an object at any revision would return by the rules, without deleting
// anything. It asks neither an interceptor nor BeforeDelete.
func (s *Store) CheckDelete(ctx context.Context, uuid string) error {
	return s.writer.checkDelete(ctx, uuid)
}

// CheckNamed returns the error of a deletion of an object that is refused because others name it: Conflict with
// ErrRestricted.
func (s *Store) CheckNamed(ctx context.Context, uuid string) error {
	if r := s.writer.restricting(CallOf(ctx)); r != nil {
		return r.check(ctx, uuid)
	}
	return nil
}

// Mutate changes fields of an object that belfry itself maintains and that no
// caller may set: records of binaries, the state of logins. It calls change with
// the stored object, and again when another write came first. Without Fields it
// writes nothing. It returns the object; a client gets only its uuid and revision.
//
// A client needs the right to update. The rule's input is Fields, without internal
// ones. The schema applies as for Update, unless the fields are all belfry's own.
//
// Errors: those of Update, and those of change.
func (s *Store) Mutate(ctx context.Context, uuid string, change func(Stored) (Mutation, error)) (Stored, error) {
	return s.writer.mutate(ctx, uuid, change)
}

// CheckMutation returns the error that Mutate of a store would return, without changing anything. It asks no
// interceptor.
func CheckMutation(ctx context.Context, s *Store, uuid string, change func(Stored) (Mutation, error)) error {
	return s.writer.checkMutation(ctx, uuid, change)
}

// List returns a page of the objects that match, for a client without those that
// the policy denies and without the fields it must not see.
//
// Errors: Canceled, Unavailable, and
//
//   - Invalid for a filter, an order or a cursor that the indexes can't answer, or
//     with a field that the client may read in only some objects
//   - Unauthenticated or Denied if the rule, or that of such a field, denies the
//     list and does not depend on the object
func (s *Store) List(ctx context.Context, o ListOptions) (List, error) { return s.lister.list(ctx, o) }

// All iterates over all objects in the order of their uuids, reading pages of
// pageSize objects. It ends after the first error.
func (s *Store) All(ctx context.Context, pageSize int) iter.Seq2[Stored, error] {
	return toStoredSeq(driver.Records(ctx, s.core.driver, pageSize))
}

// Scan returns a page of all objects in the order of their uuids.
func (s *Store) Scan(ctx context.Context, after []byte, limit int) ([]Stored, []byte, error) {
	return s.lister.scanPage(ctx, after, limit)
}

// Linked iterates over the objects whose key refers to a target, reading pages of
// pageSize objects. The index may lag: read the object again where it matters. It
// ends after the first error: Unavailable while the index is being built, also after all that it has.
func (s *Store) Linked(ctx context.Context, key, target string, pageSize int) iter.Seq2[Stored, error] {
	return s.opened.state.complete(ctx, mapIndex(key), false, s.lister.matches(ctx, driver.Query{
		Index: mapIndex(key), Equal: [][]byte{[]byte(target)}, Limit: pageSize,
	}))
}

// InChunks yields objects some at a time: so many at most, and no more once they have so many bytes; 0: any number of
// bytes. The last chunk may come with the error that has ended the objects.
func InChunks(all iter.Seq2[Stored, error], most, maxBytes int) iter.Seq2[[]Stored, error] {
	return func(yield func([]Stored, error) bool) {
		var some []Stored
		bytes := 0
		for x, err := range all {
			if err != nil {
				yield(some, err)
				return
			}
			some, bytes = append(some, x), bytes+len(x.Body)
			if len(some) < most && (maxBytes == 0 || bytes < maxBytes) {
				continue
			}
			if !yield(some, nil) {
				return
			}
			some, bytes = nil, 0
		}
		if len(some) > 0 {
			yield(some, nil)
		}
	}
}

// LinkedPage is a page of Linked, in the order of the objects' uuids.
type LinkedPage struct {
	Objects   []Stored
	Positions [][]byte // of each object: where a page begins that follows it
	Next      []byte   // where the next page begins; nil after the last one
}

// LinkedFrom returns the page of Linked at a position; nil: the first one.
func (s *Store) LinkedFrom(ctx context.Context, key, target string, at []byte, limit int) (p LinkedPage, err error) {
	page, err := s.core.driver.Query(ctx, driver.Query{
		Index: mapIndex(key), Equal: [][]byte{[]byte(target)}, Limit: limit, After: at,
	})
	if err != nil {
		return LinkedPage{}, err
	}
	p.Positions, p.Next = page.Positions, page.Next
	for o, err := range s.opened.state.complete(ctx, mapIndex(key), false, toStoredSeq(func(
		yield func(driver.Record, error) bool,
	) {
		for _, r := range page.Records {
			if !yield(r, nil) {
				return
			}
		}
	})) {
		if err != nil {
			return LinkedPage{}, err
		}
		p.Objects = append(p.Objects, o)
	}
	return p, nil
}

// WithBinary iterates over the objects that hold a binary of a service, reading pages of pageSize objects. The index
// may lag: read the object again where it matters. It needs Options.IndexBinaries, and ends after the first error:
// Unavailable while the index is being built, also after all that it has. If it ends without one, all objects that held
// the binary then were found: no process has written without the index.
func (s *Store) WithBinary(ctx context.Context, service, hash string, pageSize int) iter.Seq2[Stored, error] {
	return s.opened.state.complete(ctx, binaryIndex, true, s.lister.matches(ctx, driver.Query{
		Index: binaryIndex, Equal: [][]byte{[]byte(service), []byte(hash)}, Limit: pageSize,
	}))
}

// SearchRule identifies the terms of SearchTerms: with another rule objects have others. "": they have no terms.
func (s *Store) SearchRule() string { return s.lister.ruleKey() }

// SearchTerms returns the terms of an object that show a search whether a caller may list it.
func (s *Store) SearchTerms(ctx context.Context, body []byte) ([]string, error) {
	return s.lister.searchTerms(ctx, body)
}
