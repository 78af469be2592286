package binary

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Upload is a binary that is to be added to an object, or to replace one there.
type Upload struct {
	Place
	Body io.Reader

	// Size is the announced size of Body in bytes, -1 when it is unknown. A Body
	// of another size is refused.
	Size int64

	Name       string // cleaned: see Record
	Mimetype   string
	Metadata   object.Object
	Digest     []byte // the announced SHA-256 of Body; nil: none
	IfRevision uint64 // 0, or the revision that the object must have

	// Types are media types as in Options, which narrow those of the place; nil: they don't.
	Types []string

	// Budget is the memory beyond that of Memory, to send several parts at once to a
	// storage that holds parts in memory; nil: that of the storage.
	Budget driver.Budget

	// Reauthorize is called when the content has arrived, which may take hours, and
	// returns the context with which the record is written: that of the caller as it
	// is then. Its error refuses the upload. nil: the context of Put.
	Reauthorize func(context.Context) (context.Context, error)
}

// Result is the outcome of an upload.
type Result struct {
	Record
	Index    int
	Replaced bool         // another record was at the index
	Object   store.Stored // after the upload; for a client the uuid and the revision
}

// Validate returns the error with which Put would refuse an upload before it
// reads the body, because of its place, the revision, the announced size, the
// metadata or the policy. A rule over the input sees an empty array in the
// property.
func (s *Service) Validate(ctx context.Context, up Upload) error {
	st, err := s.storeOf(up.Place)
	if err != nil {
		return err
	}
	if err := s.checkProperty(st, up.Property); err != nil {
		return err
	}
	o, err := st.GetAuthorized(ctx, up.UUID, policy.Update, object.Object{up.Property: []byte("[]")})
	if err != nil {
		return err
	}
	if _, err := s.attachableAt(ctx, st, o, up); err != nil {
		return err
	}
	if err := s.checkSize(up.Place, up.Size); err != nil {
		return err
	}
	if size := len(up.Metadata.Encode()); size > MaxMetadata {
		return errs.New(errs.TooLarge, "the metadata has %d bytes; the limit is %d", size, MaxMetadata)
	}
	return nil
}

func (s *Service) attachableAt(ctx context.Context, st *store.Store, o store.Stored, up Upload) (recordList, error) {
	// Whether there is a record, and how many, are revealed by the index and by refusals.
	may, err := st.MayRead(ctx, o, up.Property)
	if err != nil {
		return recordList{}, err
	}
	if !may {
		return recordList{}, errs.New(errs.Denied,
			"you may not read %q of the object, so you can't attach binaries to it", up.Property)
	}
	if up.IfRevision != 0 && o.Revision != up.IfRevision {
		return recordList{}, errs.New(errs.Mismatch, "the object is at revision %d, not %d: read it again", o.Revision,
			up.IfRevision)
	}
	return s.attachable(o, up.Place)
}

// Put stores a binary. It evaluates the policy of update before it reads the body, and again before it writes the
// record. Once the body has arrived, everything is written by the service that Options.Serving returns, so that a
// reload need not wait for a slow client. Once Put returns, content, record and event are durable. After an error the
// object is unchanged; only Unavailable, Canceled and Internal leave open whether it has the record, with its content.
//
//	NotFound                  the store, the object, or a property that can have binaries does not exist
//	Mismatch                  IfRevision or Digest differs
//	Conflict                  the property has another value, or fewer binaries than the index
//	TooLarge                  the body or the object exceeds its limit
//	Unsupported               the service does not take files of this type
//	Limited                   the caller has used up the quota
//	Invalid                   the body does not have the announced size, or the schema refuses the record
//	Unauthenticated, Denied   the policy of update refuses
//	Canceled                  the body ends early
//	Unavailable
//
// An error of package errs that Body returns is returned unchanged.
func (s *Service) Put(ctx context.Context, up Upload) (_ Result, err error) {
	if err := s.Validate(ctx, up); err != nil {
		return Result{}, err
	}
	reserved := s.quotas.begin(ctx)
	defer func() { reserved.end(ctx) }()
	if err := reserved.take(ctx, max(up.Size, 0)); err != nil {
		return Result{}, err
	}
	in, err := s.receive(ctx, up, reserved)
	if err != nil {
		return Result{}, err
	}
	defer in.Discard()
	if err := reserved.keep(ctx); err != nil {
		return Result{}, err
	}
	now, done, err := s.latest()
	if err != nil {
		return Result{}, err
	}
	defer done()
	return now.write(ctx, up, in)
}

// write takes the steps of an upload with a content that has arrived.
func (s *Service) write(ctx context.Context, up Upload, in *incoming) (_ Result, err error) {
	if err := s.checkSize(up.Place, in.size); err != nil {
		return Result{}, err
	}
	media, err := s.typeOf(up, in)
	if err != nil {
		return Result{}, err
	}
	defer func() {
		if err != nil {
			// The content may have been committed without a record.
			s.markUnused(ctx, in.hash)
		}
	}()
	mark, err := s.commit(ctx, in)
	if err != nil {
		return Result{}, err
	}
	record := Record{
		Hash: in.hash, Name: cleanName(up.Name), Size: in.size, Mimetype: cleanType(media),
		Created: timestamp(s.now()), Metadata: up.Metadata,
	}
	w := written{place: up.Place, record: record.encode()}
	if up.Reauthorize != nil {
		now, err := up.Reauthorize(ctx)
		if err != nil {
			return Result{}, err
		}
		ctx = now
	}
	result, err := s.attach(ctx, up, &w)
	if notWritten(err) {
		return Result{}, err
	}
	// The record may have been written, so step 5 is taken even if the client has
	// disconnected.
	if lost := s.verifyContent(context.WithoutCancel(ctx), in, mark, w); lost != nil {
		return Result{}, lost
	}
	result.Record = record
	return result, err
}

// written is a record that was written, and the one that it replaced.
type written struct {
	place    Place // with the actual index
	record   []byte
	replaced []byte // nil if the record is new
}

// attach takes step 4 of an upload: it writes w.record, and sets the other fields
// of w.
func (s *Service) attach(ctx context.Context, up Upload, w *written) (Result, error) {
	st, err := s.storeOf(up.Place) // a reload may have removed it, or the property, since Validate
	if err != nil {
		return Result{}, err
	}
	if err := s.checkProperty(st, up.Property); err != nil {
		return Result{}, err
	}
	var result Result
	stored, err := st.Mutate(ctx, up.UUID, func(o store.Stored) (store.Mutation, error) {
		list, err := s.attachableAt(ctx, st, o, up)
		if err != nil {
			return store.Mutation{}, err
		}
		w.place.Index, w.replaced = up.Index, nil
		if up.Index == Append || up.Index == len(list.records) {
			w.place.Index = len(list.records)
			list.records = append(list.records, w.record)
		} else {
			w.replaced = list.records[up.Index]
			list.records[up.Index] = w.record
		}
		result.Index, result.Replaced = w.place.Index, w.replaced != nil
		return store.Mutation{
			Fields:      list.fields(),
			ExtraEvents: []store.ExtraEvent{s.uploadedEvent(up.Place, w.place.Index, w.record, w.replaced)},
		}, nil
	})
	result.Object = stored
	return result, err
}

// notWritten reports whether an error guarantees that the record was not written.
// After the other kinds it may have been.
func notWritten(err error) bool {
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

// checkDigest compares a hash with the announced digest, if the client has announced one.
func checkDigest(want []byte, hash string) error {
	sum, err := hex.DecodeString(hash)
	if err != nil || want != nil && !bytes.Equal(want, sum) {
		return errs.New(errs.Mismatch, "the body has the SHA-256 %s, which is not the announced digest: send it again",
			hash)
	}
	return nil
}

// checkSize refuses a file that is larger than its property, or the service, may have.
func (s *Service) checkSize(p Place, size int64) error {
	of := s.limits[p.Store][p.Property].MaxSize
	switch {
	case of > 0 && size > of:
		return errs.New(errs.TooLarge, "a file of %q can have at most %d bytes", p.Property, of)
	case s.maxSize > 0 && size > s.maxSize:
		return errs.New(errs.TooLarge, "a binary can have at most %d bytes", s.maxSize)
	}
	return nil
}
