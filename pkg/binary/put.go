package binary

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Upload is a binary on its way in.
type Upload struct {
	Place
	Body io.Reader

	// Size is how many bytes Body was announced to have, -1 when that is not
	// known. Fewer or more are refused.
	Size int64

	Name       string // what is no part of a good name is dropped
	Mimetype   string
	Metadata   object.Object
	Digest     []byte // the SHA-256 that Body was announced to have; nil: not announced
	IfRevision uint64 // not 0: only while the object is at this revision
}

// Result is what an upload led to.
type Result struct {
	Record
	Index    int
	Replaced bool         // there was another record at the index
	Object   store.Stored // after the upload, as the caller may see it
}

// Check reports what Put would refuse before it reads the body: the place, the
// revision, the size announced, the policy. A rule about what comes in sees an
// empty array in the property.
func (s *Service) Check(ctx context.Context, up Upload) error {
	st, err := s.storeOf(up.Place)
	if err != nil {
		return err
	}
	if err := s.allowed(st, up.Property); err != nil {
		return err
	}
	o, err := st.Look(ctx, up.UUID, policy.Update, object.Object{up.Property: []byte("[]")})
	if err != nil {
		return err
	}
	if _, err := s.attachableAt(o, up); err != nil {
		return err
	}
	if s.MaxSize > 0 && up.Size > s.MaxSize {
		return s.tooLarge()
	}
	if size := len(up.Metadata.Encode()); size > MaxMetadata {
		return errs.New(errs.TooLarge, "the metadata would have %d bytes; at most %d are taken", size, MaxMetadata)
	}
	return nil
}

func (s *Service) attachableAt(o store.Stored, up Upload) (holding, error) {
	if up.IfRevision != 0 && o.Revision != up.IfRevision {
		return holding{}, errs.New(errs.Mismatch, "the object is at revision %d, not %d: read it again", o.Revision, up.IfRevision)
	}
	return s.attachable(o, up.Place)
}

// Put takes a binary in: once it returns, content, record and event are
// durable. After an error the object is as it was, or, when that error is
// Unavailable, Canceled or Internal, may hold the record, with its content.
//
// Errors: NotFound (store, object, a property that takes none); Mismatch when
// IfRevision or Digest does not hold; Conflict when the property holds something
// else, or fewer binaries than the index; TooLarge; Invalid when the body has
// not the announced size, or the schema refuses the record; Unauthenticated or
// Denied by the policy of update; Canceled when the body breaks off;
// Unavailable. An error of package errs that Body reports is passed on.
func (s *Service) Put(ctx context.Context, up Upload) (_ Result, err error) {
	if err := s.Check(ctx, up); err != nil {
		return Result{}, err
	}
	in, err := s.receive(ctx, up)
	if err != nil {
		return Result{}, err
	}
	defer in.Discard()
	defer func() {
		if err != nil {
			// The content is there, and perhaps no record names it.
			s.forget(ctx, in.hash)
		}
	}()
	mark, err := s.keep(ctx, in)
	if err != nil {
		return Result{}, err
	}
	record := Record{
		Hash: in.hash, Name: cleanName(up.Name), Size: in.size, Mimetype: cleanType(up.Mimetype),
		Created: timestamp(s.Now()), Metadata: up.Metadata,
	}
	w := written{place: up.Place, record: record.encode()}
	result, err := s.attach(ctx, up, &w)
	if definite(err) {
		return Result{}, err
	}
	// From here on the record may be there, whoever has gone meanwhile.
	if unsafe := s.assure(context.WithoutCancel(ctx), in, mark, w); unsafe != nil {
		return Result{}, unsafe
	}
	result.Record = record
	return result, err
}

// written is a record that was put into an object, and what it replaced.
type written struct {
	place    Place // with the index that it got
	record   []byte
	replaced []byte // nil when it was appended
}

// attach writes the record, and notes in w what was written.
func (s *Service) attach(ctx context.Context, up Upload, w *written) (Result, error) {
	st := s.Set.Store(up.Store)
	var result Result
	stored, err := st.Revise(ctx, up.UUID, func(o store.Stored) (store.Revision, error) {
		held, err := s.attachableAt(o, up)
		if err != nil {
			return store.Revision{}, err
		}
		w.place.Index, w.replaced = up.Index, nil
		if up.Index == Add || up.Index == len(held.records) {
			w.place.Index = len(held.records)
			held.records = append(held.records, w.record)
		} else {
			w.replaced = held.records[up.Index]
			held.records[up.Index] = w.record
		}
		result.Index, result.Replaced = w.place.Index, w.replaced != nil
		return store.Revision{
			Fields: held.fields(),
			Also:   []store.Also{s.uploaded(up.Place, w.place.Index, w.record, w.replaced)},
		}, nil
	})
	result.Object = stored
	return result, err
}

// definite reports whether an error says that nothing was written. Behind the
// others the write may have been made.
func definite(err error) bool {
	if err == nil {
		return false
	}
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Internal, errs.Canceled:
		return false
	default:
		return true
	}
}

// checkDigest compares a hash with the digest that was announced.
func checkDigest(want []byte, hash string) error {
	sum, err := hex.DecodeString(hash)
	if err != nil || want != nil && !bytes.Equal(want, sum) {
		return errs.New(errs.Mismatch, "what arrived has the SHA-256 %s, not the one that was announced: send it again", hash)
	}
	return nil
}

func (s *Service) tooLarge() error {
	return errs.New(errs.TooLarge, "a binary can have at most %d bytes here", s.MaxSize)
}
