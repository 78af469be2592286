// Package binary attaches files to objects. It is the only way to add, read and
// delete them.
//
// A binary is a record in an array of its object (hash, name, size, ...) and a
// content in a storage. A content is stored once under its hash, however many
// records reference it. A record and its events are written atomically with the
// object. A content is garbage once no record references it: package sweep
// decides when to collect it, and this package has the steps.
//
// # Invariant: no record without its content
//
// Uploads and sweepers may work on the same content at the same time, in
// different processes. They coordinate through the store Contents. A content has
// at most one entry there, and every write of an entry is a compare-and-set:
//
//	(none) ──► candidate ──► marked for deletion ──► deleting ──► (none)
//	              ▲                 │
//	              └─────────────────┤ modified within the grace period
//	                  (none) ◄──────┘ referenced, or taken back by an upload
//
// An upload:
//
//  1. Reads the entry until it is stable. No entry and a candidate are stable. An
//     entry that is marked for deletion is deleted; one that is deleting is
//     waited for.
//  2. Commits the content, which updates its modification time.
//  3. Reads the entry as in step 1. If it has changed, continues with step 2.
//  4. Writes the record.
//  5. Reads the entry as in step 1. If it has changed since step 3, repeats steps
//     2 and 3.
//
// A sweeper:
//
//  1. Marks the entry for deletion.
//  2. Waits until the indexes include every write that was acknowledged by then.
//  3. Keeps the content when it was modified within the grace period, or when an
//     object references it. The index only names objects to read: the objects
//     decide.
//  4. Changes the entry from marked for deletion to deleting.
//  5. Deletes the content.
//  6. Deletes the entry.
//
// A content is deleted only while its entry says deleting. If an upload reads the same
// stable entry before and after a commit, no deletion ran in between: the content exists
// after step 3. Only a sweeper that marks it later can delete it.
//
// If the mark comes before step 5 of the upload, step 5 sees that the entry has changed.
// The upload still has the whole content in its stage. It deletes the mark, so that step
// 4 of the sweeper fails, or waits for the end of the deletion. Then it commits again. If
// the mark comes after step 5, the record exists and step 3 of the sweeper finds it. None
// of this depends on clocks.
//
// # Crashes
//
// An upload that is killed after step 4 does not reach step 5. A sweeper in
// between reads the modification time of the content in its step 3, after the
// upload has updated it, and keeps the content. This does depend on time: the
// grace period must be longer than steps 2 to 4 of an upload.
//
// A killed sweeper leaves its entry. Any other sweeper restarts with step 1, which makes
// the remaining compare-and-set steps of the first one fail. Step 5 is not a
// compare-and-set. So an entry that is deleting has a lease that is much longer than a
// deletion takes.
//
// A sweeper that is suspended right before step 5 for longer than its lease could delete
// a content that has been uploaded again. Step 6 detects and reports that.
//
// Any other code that copies records must, after it has written each one, wait
// until the entry is stable and then check that the content exists.
//
// # Quotas
//
// A replaced content takes space for the grace period. Without a limit, a caller with
// write access to one file could fill the storage at the speed of the network. An upload
// reserves its bytes before it writes them: see quotas and account. Committed bytes count
// even if the upload fails afterwards.
package binary

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/backoff"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Options configure a service. Name, Set, Contents and Storage are required.
type Options struct {
	Name     string
	Set      *store.Set     // every store is open with Holding
	Contents *store.Store   // opened with ContentsOptions; services may share it
	Storage  driver.Storage // not shared with other services

	// Properties are the properties that binaries may be attached to, by store.
	// Nil means any property that the server does not own.
	Properties map[string][]string

	// Types are the media types that uploads may have, as mediatype.Judge finds them. Nil means any type, which the
	// client names.
	Types []string

	// Limits are those of single properties, by store. They narrow those of the service.
	Limits map[string]map[string]Limits

	Quotas *store.Store // opened with QuotasOptions; services may share it; nil: no quotas
	Quota  Quota        // of each caller
	// which the new one replaces; its accounts continue if the quota is the same; may be nil
	Previous *Service

	// Serving returns the service with this name that the process has now, or nil, and keeps its stores in use until
	// done is called. nil: no service is ever replaced.
	Serving func() (now *Service, done func())

	Registry prometheus.Registerer // of the metrics; nil: none

	MaxSize      int64            // bytes of one binary; 0: the limit of the storage
	Grace        time.Duration    // how long a content without records is kept; 0: an hour
	Lease        time.Duration    // how long a deletion belongs to the sweeper that began it; 0: 5 minutes
	RetryTimeout time.Duration    // how long an upload waits for the deletion of its content; 0: 30 s
	Now          func() time.Time // nil: time.Now
}

// Limits are the limits of the files of a property.
type Limits struct {
	MaxSize int64    // bytes of one file; 0: that of the service
	Types   []string // media types as in Options; nil: those of the service
}

// Service attaches binaries to objects. It is safe for concurrent use.
type Service struct {
	name         string
	set          *store.Set
	entries      entryTable
	storage      driver.Storage
	properties   map[string][]string
	types        []string
	limits       map[string]map[string]Limits
	quotas       *quotas // nil: none
	maxSize      int64
	grace        time.Duration
	lease        time.Duration
	retryTimeout time.Duration
	now          func() time.Time
	wait         func(ctx context.Context, d time.Duration) error
	serving      func() (*Service, func()) // see Options
}

// New returns a service. Later changes of o have no effect.
func New(o Options) *Service {
	s := &Service{
		name: o.Name, set: o.Set, entries: entryTable{store: o.Contents, service: o.Name}, storage: o.Storage,
		types: slices.Clone(o.Types), maxSize: o.MaxSize, limits: o.Limits,
		grace: cmp.Or(o.Grace, time.Hour), lease: cmp.Or(o.Lease, 5*time.Minute),
		retryTimeout: cmp.Or(o.RetryTimeout, 30*time.Second), now: o.Now, wait: backoff.Sleep,
		serving: o.Serving,
	}
	if s.serving == nil {
		s.serving = func() (*Service, func()) { return s, func() {} }
	}
	if o.Properties != nil {
		s.properties = map[string][]string{}
		for name, properties := range o.Properties {
			s.properties[name] = slices.Clone(properties)
		}
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.quotas = newQuotas(o, s.grace, s.now)
	if p := o.Previous; p != nil && p.quotas != nil && s.quotas != nil && p.quotas.quota == s.quotas.quota {
		s.quotas = p.quotas
	}
	return s
}

// latest returns the service that writes an upload whose content has arrived, and keeps its stores in use until done is
// called. An upload can take hours, after which other rules and indexes may apply than at its beginning. NotFound if
// the service was removed meanwhile, or was added again with another storage, which lacks the content.
func (s *Service) latest() (now *Service, done func(), err error) {
	now, done = s.serving()
	if now != s && (now == nil || now.storage != s.storage) {
		done()
		return nil, nil, errs.New(errs.NotFound,
			"the service %s was removed from the configuration during the upload", s.name)
	}
	return now, done, nil
}

// Name returns the name of the service.
func (s *Service) Name() string { return s.name }

// Properties returns the properties of a store that binaries may be attached
// to, as Options.Properties names them.
func (s *Service) Properties(store string) []string { return s.properties[store] }

// Limits returns the limits of uploads to a property; no types are any, and a size of 0 is that of the storage.
func (s *Service) Limits(store, property string) Limits {
	of := s.limits[store][property]
	if of.Types == nil {
		of.Types = s.types
	}
	of.MaxSize = cmp.Or(of.MaxSize, s.maxSize)
	return of
}

// Get returns the record at a place. NotFound if there is no record, or if the binary
// belongs to another service; Unauthenticated or Denied by the policy of get;
// Unavailable.
func (s *Service) Get(ctx context.Context, p Place) (Record, error) {
	record, _, err := s.GetWithObject(ctx, p)
	return record, err
}

// GetWithObject is Get, and returns the object that has the record.
func (s *Service) GetWithObject(ctx context.Context, p Place) (Record, store.Stored, error) {
	st, err := s.storeOf(p)
	if err != nil {
		return Record{}, store.Stored{}, err
	}
	o, err := st.GetAuthorized(ctx, p.UUID, policy.Get, nil)
	if err != nil {
		return Record{}, store.Stored{}, err
	}
	list, err := s.attached(ctx, st, o, p)
	if err != nil {
		return Record{}, store.Stored{}, err
	}
	record, err := list.at(p)
	return record, o, err
}

// Open reads length bytes of a content from offset; a negative length reads to
// the end. The caller has got the record of the content, since Open checks no
// policy. io.Copy from the reader is the fastest way to a connection: it may be
// a file. NotFound when the content has been deleted since, or is lost.
func (s *Service) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	return s.storage.Open(ctx, hash, offset, length)
}

// Sign returns a URL with which anyone can read a content for a limited time. The
// caller has got the record of the content, since Sign checks no policy. ok is
// false when the storage can't sign.
func (s *Service) Sign(ctx context.Context, hash string, h driver.SignedHeaders,
	validFor time.Duration) (url string, ok bool, err error) {
	signer, ok := s.storage.(driver.Signer)
	if !ok {
		return "", false, nil
	}
	url, err = signer.Sign(ctx, hash, h, validFor)
	return url, err == nil, err
}

// Delete removes the record at a place if it has the given hash, and returns the
// object without it. The index of each record after it decreases by one.
//
// Errors: NotFound when there is no record; Mismatch when it has another hash;
// Unauthenticated or Denied by the policy of update; Invalid when the schema
// requires the record; Conflict, Unavailable.
func (s *Service) Delete(ctx context.Context, p Place, hash string) (store.Stored, error) {
	st, err := s.storeOf(p)
	if err != nil {
		return store.Stored{}, err
	}
	// The policy comes first: a caller without the right must not learn whether
	// there is a binary.
	if _, err := st.GetAuthorized(ctx, p.UUID, policy.Update, object.Object{p.Property: []byte("[]")}); err != nil {
		return store.Stored{}, err
	}
	return st.Mutate(ctx, p.UUID, func(o store.Stored) (store.Mutation, error) {
		list, err := s.attached(ctx, st, o, p)
		if err != nil {
			return store.Mutation{}, err
		}
		record, err := list.at(p)
		if err != nil {
			return store.Mutation{}, err
		}
		if record.Hash != hash {
			return store.Mutation{}, errs.New(errs.Mismatch, "the binary at %s has another hash: read the object again",
				p)
		}
		raw := list.records[p.Index]
		list.records = slices.Delete(list.records, p.Index, p.Index+1)
		return store.Mutation{Fields: list.fields(),
			ExtraEvents: []store.ExtraEvent{s.deletedEvent(p, p.Index, raw)}}, nil
	})
}
