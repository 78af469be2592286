package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"belfry/pkg/object"
)

// Copy is a field of a store's objects with the value that a field of another object has: the one that a reference
// names. It is absent if the reference names no object, or several, or if that object lacks the field.
type Copy struct {
	Field     string // of the objects of the store
	Reference string // the field that names the source
	Source    string // the store of the source
	From      string // the field of the source
}

// MaxCopyBytes is the most bytes of a value that is copied. A larger one is left out.
const MaxCopyBytes = 64 << 10

// value returns the copy of a source with this body; nil for none.
func (c *Copy) value(body []byte) []byte {
	if body == nil {
		return nil
	}
	value := object.Canonical(object.Field(body, c.From))
	if len(value) > MaxCopyBytes || object.CheckCopied(value) != nil {
		return nil
	}
	return slices.Clone(value)
}

// copier sets the copies of the objects of a store.
type copier struct {
	store  string
	copies []Copy // a copy whose reference is one, too, comes after that
	peers  *peers
}

// named identifies an object of a store.
type named struct{ store, uuid string }

// follow sets those copies of an object that is about to be written whose reference is new, or names another object
// than before: stored is the object before the write, nil for a new one. The others have the value that they have:
// workers keep it.
func (c *copier) follow(ctx context.Context, uuid string, stored, next object.Object) (failed error) {
	return c.set(ctx, uuid, next, map[named][]byte{}, func(one *Copy) bool {
		return stored != nil && bytes.Equal(stored[one.Reference], next[one.Reference])
	})
}

// set sets the copies of an object, without those to skip. read are sources that have been read. A copy whose source
// can't be read is left out; its error is returned.
func (c *copier) set(
	ctx context.Context, uuid string, next object.Object, read map[named][]byte, skip func(*Copy) bool,
) (failed error) {
	for i := range c.copies {
		one := &c.copies[i]
		if skip(one) {
			continue
		}
		value, err := c.valueOf(ctx, one, uuid, next, read)
		if err != nil {
			failed = err
		}
		if value == nil {
			delete(next, one.Field)
		} else {
			next[one.Field] = value
		}
	}
	return failed
}

// valueOf returns the value of a copy. read are the sources that were read before.
func (c *copier) valueOf(
	ctx context.Context, one *Copy, uuid string, next object.Object, read map[named][]byte,
) ([]byte, error) {
	source, ok := object.Named(next[one.Reference])
	switch {
	case !ok || !object.ValidUUID(source):
		return nil, nil
	case one.Source == c.store && source == uuid: // itself, as it will be
		return one.value(object.Object{one.From: next[one.From]}.Encode()), nil
	}
	at := named{one.Source, source}
	body, known := read[at]
	if !known {
		var err error
		if body, err = c.peers.read(ctx, one.Source, source); err != nil {
			return nil, err
		}
		read[at] = body
	}
	return one.value(body), nil
}

// names returns the fields that are copies.
func (c *copier) names() (names []string) {
	for i := range c.copies {
		names = append(names, c.copies[i].Field)
	}
	return names
}

// miscopied: see Store.Miscopied.
func (c *copier) miscopied(ctx context.Context, o Stored) (fields []string, right object.Object, err error) {
	if len(c.copies) == 0 {
		return nil, nil, nil
	}
	stored, err := o.Object()
	if err != nil {
		return nil, nil, err
	}
	right = stored.Clone()
	if err := c.set(ctx, o.UUID, right, map[named][]byte{}, func(*Copy) bool { return false }); err != nil {
		return nil, nil, err
	}
	return differingFields(c.names(), stored, right), right, nil
}

// Miscopied returns the copies of an object that are not what their sources have now.
func (s *Store) Miscopied(ctx context.Context, o Stored) (fields []string, err error) {
	fields, _, err = s.writer.copier.miscopied(ctx, o)
	return fields, err
}

// Copies returns the copies in the objects of the store. They must not be modified.
func (s *Store) Copies() []Copy { return s.opts.Copies }

// Recopy writes an object again if a copy in it is not what its source has, and reports whether it did. Like any write,
// the change has an event, which updates the data derived from it.
//
// Errors: Mismatch when the object has another revision; Unavailable.
func (w Worker) Recopy(ctx context.Context, base Stored) (bool, error) {
	differing, right, err := w.writer.copier.miscopied(ctx, base)
	if err != nil || len(differing) == 0 {
		return false, err
	}
	stored, err := base.Object()
	if err != nil {
		return false, err
	}
	_, err = w.replace(ctx, base, &write{stored: stored, next: right, followed: true})
	return err == nil, err
}

// CopyFrom is Recopy for the copies that have their values from one object, as it was read: body is nil if it does not
// exist. Of an object whose reference names another one, nothing is changed. The caller must read the source again
// after the write: it may have changed since it was read.
func (w Worker) CopyFrom(ctx context.Context, base Stored, k *Copies, source string, body []byte) (bool, error) {
	stored, err := base.Object()
	if err != nil {
		return false, err
	}
	if uuid, _ := object.Named(stored[k.Reference]); uuid != source {
		return false, nil
	}
	next, c := stored.Clone(), w.writer.copier
	err = c.set(ctx, base.UUID, next, map[named][]byte{{k.Source, source}: body}, func(one *Copy) bool {
		return one.Reference != k.Reference && bytes.Equal(stored[one.Reference], next[one.Reference])
	})
	if err != nil || len(differingFields(c.names(), stored, next)) == 0 {
		return false, err
	}
	_, err = w.replace(ctx, base, &write{stored: stored, next: next, followed: true})
	return err == nil, err
}

// follow sets the copies of a write whose references are new. If a source can't be read, the write is made without its
// copy: the event of the write has a worker set it.
func (w *writer) follow(ctx context.Context, made *write) {
	if len(w.copier.copies) == 0 {
		return
	}
	if err := w.copier.follow(ctx, made.uuid, made.stored, made.next); err != nil {
		w.log.WarnContext(ctx, "a copy is left out until its source can be read", "store", w.name, "uuid", made.uuid,
			"error", err)
	}
}

// Values identifies what is copied of a source with this body; nil: it does not exist.
func (c *Copies) Values(body []byte) string {
	h := sha256.New()
	for _, name := range c.From {
		value := object.Field(body, name)
		_, _ = fmt.Fprintf(h, "%d:%s", len(value), value)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Same reports whether copies are the same of a source with one body and with another; nil: it does not exist.
func (c *Copies) Same(a, b []byte) bool {
	return !slices.ContainsFunc(c.From, func(name string) bool {
		return !bytes.Equal(object.Field(a, name), object.Field(b, name))
	})
}
