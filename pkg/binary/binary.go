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
//  1. read the entry, until it is no threat. None, or a candidate, is none. One
//     that is condemned is taken away. One that is deleting is waited for;
//  2. commit the content, which counts as modified now;
//  3. read the entry as in step 1. When it has changed begin with step 2 again;
//  4. write the record;
//  5. read the entry as in step 1. When it has changed since step 3, take steps 2
//     and 3 again.
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
// A content is deleted only while its entry is there and says so. So a commit
// with the same harmless entry before and after it met no deletion: after step 3
// the content is there, and only a sweeper can take it away that condemns it
// later. If it does so before step 5 of the upload, then that sees the entry
// changed. The upload still has the whole content in its stage: it takes the
// condemnation away, which makes step 4 of the sweeper fail, or waits for the
// deletion, and commits once more. If the sweeper condemns it after step 5, then
// the record is there, and step 3 of the sweeper finds it. No clock is involved.
//
// An upload that is killed after step 4 takes no step 5. A sweeper that came
// between looked at the content, in its step 3, after the upload had modified
// it, and leaves what was modified lately. Here time counts: the grace of a
// content is to be longer than an upload takes from step 2 to step 4.
//
// A sweeper that is killed leaves its entry, and anybody begins anew with it by
// condemning the content again: what the other might still do then fails. Only
// step 5 can't. So an entry that is deleting is left alone for a lease, much
// longer than a deletion may take. A sweeper that stood still for the whole
// lease right in front of its step 5 could delete what has been brought back;
// it notices, and says so.
//
// Whatever else comes to copy records has to see for each of them, after it is
// written, that the entry is no threat and then that the content is there.
package binary

import (
	"context"
	"io"
	"slices"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
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
	pause  func(ctx context.Context, d time.Duration) error // waits
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
	return &Service{Options: o, ledger: ledger{store: o.Contents, service: o.Name}, pause: backoff.Sleep}
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
	// Who may not delete is not told what there is.
	if _, err := st.Look(ctx, p.UUID, policy.Update, object.Object{p.Property: []byte("[]")}); err != nil {
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
