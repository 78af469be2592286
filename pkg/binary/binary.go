// Package binary is the only way to attach a file to an object, to read it and
// to take it away.
//
// A binary is a record in an array of its object (hash, name, size, ...) and a
// content in a storage, kept once under its hash however many records name it.
// Records are written by store.Revise, in one act with their events. Contents
// go when no record names them any more: package sweep asks for it, and the
// steps are here.
//
// # No record without content
//
// An upload and a sweeper may work on the same content at the same time, in
// different processes. They meet in the store Contents, where an entry says
// what is about to happen to a content, and is changed only from what it was
// when it was read.
//
// An upload takes these steps:
//
//  1. commit the content, which counts as modified now;
//  2. read the entry. None, or a candidate, is no threat. Condemned: take the
//     entry away. Deleting: wait until it is gone, and commit again. Repeat
//     until nothing threatens;
//  3. write the record;
//  4. do step 2 again.
//
// A sweeper takes these:
//
//  1. make the entry condemned;
//  2. wait until the indexes find whatever has been written by now;
//  3. leave the content when it was modified lately, or when an object holds
//     it. The objects themselves are asked;
//  4. change the entry from condemned to deleting;
//  5. delete the content;
//  6. take the entry away.
//
// Steps 3 and 4 of the upload and steps 1 and 3 of the sweeper are each a write
// followed by a read of what the other writes. Whichever of the two writes came
// second, the read behind it sees the other one's: either the sweeper finds the
// record and leaves the content, or the upload finds the entry. If that is still
// condemned and the upload takes it away, the sweeper's step 4 fails. If it is
// deleting the upload, which still has the whole content in its stage, waits and
// brings it back. No clock is involved.
//
// An upload that is killed between steps 3 and 4 can't do so. It has read the
// entry in step 2, though, after it modified the content. So either it took the
// condemnation away before it wrote the record, or the sweeper's step 1 came
// later, and step 3 leaves what was modified lately. Here time counts: the grace
// of a content is to be longer than an upload takes from step 1 to step 3.
//
// A sweeper that is killed leaves its entry. Anybody goes on with one that is
// condemned by making it condemned anew, which ends what the other might still
// do. One that is deleting is left alone for a lease, much longer than a
// deletion may take, and then begins again with step 2. Only a sweeper that
// stood still for the whole lease right in front of its step 5 could then delete
// what has been brought back; it notices, and says so.
//
// Whatever else comes to copy records has to do step 4 for each.
package binary

import (
	"context"
	"io"
	"slices"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/policy"
	"belfry/pkg/store"
)

// Options are what a service is made of. Name, Set, Contents and Storage are
// required.
type Options struct {
	Name     string
	Set      *store.Set     // every store is open with Holding
	Contents *store.Store   // opened with ContentsOptions; all services may share it
	Storage  driver.Storage // this service's alone

	// Places are the properties that binaries may be attached to, by store. Nil:
	// any property that the server does not own.
	Places  map[string][]string
	MaxSize int64 // bytes of one binary; 0: what the storage takes

	Grace    time.Duration    // how long a content without records is kept; 0: an hour
	Lease    time.Duration    // how long a deletion is left to who began it; 0: 5 minutes
	Patience time.Duration    // of an upload with a content that is being deleted; 0: 30 s
	Now      func() time.Time // nil: time.Now
}

// Service attaches binaries to objects. It is safe for concurrent use.
type Service struct {
	Options
	ledger ledger
}

// New makes a service.
func New(o Options) *Service {
	orElse := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	orElse(&o.Grace, time.Hour)
	orElse(&o.Lease, 5*time.Minute)
	orElse(&o.Patience, 30*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{Options: o, ledger: ledger{store: o.Contents, service: o.Name}}
}

// Find returns the record at a place. NotFound when there is none, or when the
// binary there is another service's; Unauthenticated or Denied by the policy of
// get; Unavailable.
func (s *Service) Find(ctx context.Context, p Place) (Record, error) {
	st, err := s.storeOf(p)
	if err != nil {
		return Record{}, err
	}
	o, err := st.Look(ctx, p.UUID, policy.Get, nil)
	if err != nil {
		return Record{}, err
	}
	held, err := s.attached(ctx, st, o, p)
	if err != nil {
		return Record{}, err
	}
	return held.at(p)
}

// Open reads length bytes of a content from offset; a negative length reads to
// the end. It is for a record that was found. io.Copy from what it returns is
// the fastest way to a connection: it may be a file. NotFound when the content
// has gone since, or is lost.
func (s *Service) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	return s.Storage.Open(ctx, hash, offset, length)
}

// Sign returns a URL that gives the content of a record that was found to
// whoever has it, for a time. ok is false when the storage has no such thing.
func (s *Service) Sign(ctx context.Context, hash string, h driver.SignedHeaders, lasting time.Duration) (url string, ok bool, err error) {
	signer, ok := s.Storage.(driver.Signer)
	if !ok {
		return "", false, nil
	}
	url, err = signer.Sign(ctx, hash, h, lasting)
	return url, err == nil, err
}

// Delete takes the record at a place away, if its hash is the one given, and
// returns the object without it. The records behind it move up.
//
// Errors: NotFound when there is none; Mismatch when it has another hash;
// Unauthenticated or Denied by the policy of update; Invalid when the schema
// wants the record; Conflict, Unavailable.
func (s *Service) Delete(ctx context.Context, p Place, hash string) (store.Stored, error) {
	st, err := s.storeOf(p)
	if err != nil {
		return store.Stored{}, err
	}
	return st.Revise(ctx, p.UUID, func(o store.Stored) (store.Revision, error) {
		held, err := s.attached(ctx, st, o, p)
		if err != nil {
			return store.Revision{}, err
		}
		record, err := held.at(p)
		if err != nil {
			return store.Revision{}, err
		}
		if record.Hash != hash {
			return store.Revision{}, errs.New(errs.Mismatch, "the binary at %s is another one, with the hash %s: read the object again", p, record.Hash)
		}
		raw := held.records[p.Index]
		held.records = slices.Delete(held.records, p.Index, p.Index+1)
		return store.Revision{Fields: held.fields(), Also: []store.Also{s.deleted(p, p.Index, raw)}}, nil
	})
}
