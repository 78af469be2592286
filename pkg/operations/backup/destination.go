package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Storage is the storage of a destination.
type Storage interface {
	driver.Storage
	driver.Documents
}

// Destination is where backups are.
type Destination struct {
	storage Storage
	name    string // for messages
}

// NewDestination returns the destination in a storage. name is for messages: a folder, a bucket.
func NewDestination(s Storage, name string) *Destination { return &Destination{storage: s, name: name} }

// wrap adds the destination to an error.
func (d *Destination) wrap(err error) error {
	return errs.Wrap(err, errs.KindOf(err), "the destination of backups, %s", d.name)
}

// IDs returns the ids of all backups, the oldest first.
func (d *Destination) IDs(ctx context.Context) ([]string, error) {
	names, err := d.storage.DocumentNames(ctx)
	if err != nil {
		return nil, d.wrap(err)
	}
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutPrefix(name, manifestPrefix); ok {
			if id, ok = strings.CutSuffix(id, manifestSuffix); ok && idFormat.MatchString(id) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Manifest reads the manifest of a backup. Errors: NotFound; Invalid for one of another
// format; Internal for a damaged one; those of the storage.
func (d *Destination) Manifest(ctx context.Context, id string) (*Manifest, error) {
	if !idFormat.MatchString(id) {
		return nil, errs.New(errs.Invalid, "%q is not the id of a backup: `belfry backup list` shows them", id)
	}
	data, err := d.storage.Document(ctx, manifestPrefix+id+manifestSuffix)
	if errors.Is(err, errs.NotFound) {
		return nil, errs.New(errs.NotFound, "%s has no backup %s: `belfry backup list` shows those that it has", d.name,
			id)
	}
	if err != nil {
		return nil, d.wrap(err)
	}
	return decodeManifest(id, data)
}

// Latest returns the id of the latest backup. Invalid without one.
func (d *Destination) Latest(ctx context.Context) (string, error) {
	ids, err := d.IDs(ctx)
	if err == nil && len(ids) == 0 {
		err = errs.New(errs.Invalid, "%s has no complete backup: check the destination; `belfry backup` makes one",
			d.name)
	}
	if err != nil {
		return "", err
	}
	return ids[len(ids)-1], nil
}

// markerName is the document that makes a storage a destination. It is the first that is
// written there, and no service of binaries writes it: Prune removes only data of backups.
const markerName = "destination.json"

// marker is its content.
type marker struct {
	Installation string `json:"installation"` // whose backups these are
}

// claim makes a storage the destination of an installation, which may have backups there.
// Invalid if it is that of another one, or has no backups and something else.
func (d *Destination) claim(ctx context.Context, installation string, backups bool) error {
	data, err := d.storage.Document(ctx, markerName)
	if err == nil {
		var m marker
		if err := json.Unmarshal(data, &m); err != nil {
			return errs.Wrap(err, errs.Invalid,
				"%s in %s can't be read: remove it if no other installation of belfry has its backups there",
				markerName, d.name)
		}
		if m.Installation != installation {
			return d.errOther()
		}
		return nil
	}
	if !errors.Is(err, errs.NotFound) {
		return d.wrap(err)
	}
	if !backups {
		page, _, err := d.storage.List(ctx, "", 1)
		if err != nil {
			return d.wrap(err)
		}
		if len(page) > 0 {
			return errs.New(errs.Invalid, "%s has contents and no backups, so it may be the place of the files of a "+
				"binary service: give backups a folder or a prefix of their own", d.name)
		}
	}
	if data, err = json.Marshal(marker{Installation: installation}); err != nil {
		return err
	}
	return d.wrap(d.storage.PutDocument(ctx, markerName, data))
}

func (d *Destination) errOther() error {
	return errs.New(errs.Invalid,
		"%s has backups of another installation of belfry: give each a folder or a prefix of its own", d.name)
}

func (d *Destination) putManifest(ctx context.Context, m *Manifest) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	if len(data) >= driver.MaxDocument {
		return errs.New(errs.TooLarge, "the list of the parts of the backup has %d bytes; the limit is %d", len(data),
			driver.MaxDocument)
	}
	return d.wrap(d.storage.PutDocument(ctx, manifestPrefix+m.ID+manifestSuffix, data))
}

func (d *Destination) deleteManifest(ctx context.Context, id string) error {
	return d.wrap(d.storage.DeleteDocument(ctx, manifestPrefix+id+manifestSuffix))
}

// has reports whether the destination has a part.
func (d *Destination) has(ctx context.Context, p Part) (bool, error) {
	info, found, err := d.storage.Stat(ctx, p.Hash)
	return found && info.Size == p.Size, d.wrap(err)
}

// put stores bytes as a part, unless the destination has it, and reports whether it has
// stored it.
func (d *Destination) put(ctx context.Context, data []byte) (Part, bool, error) {
	sum := sha256.Sum256(data)
	p := Part{Hash: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	if have, err := d.has(ctx, p); err != nil || have {
		return p, false, err
	}
	return p, true, d.copy(ctx, p, bytes.NewReader(data))
}

// errChanged is the error of a copy that does not have its hash.
var errChanged = errs.New(errs.Internal, "the content does not match its hash")

// copy stores a part that the destination does not have. One of another size is replaced.
// An error of the reader is returned as it is.
func (d *Destination) copy(ctx context.Context, p Part, from io.Reader) error {
	in := &source{Reader: from}
	err := storeContent(ctx, d.storage, p, in)
	if in.failed || errors.Is(err, errChanged) {
		return err
	}
	return d.wrap(err)
}

// source is a reader that remembers whether it has failed.
type source struct {
	io.Reader
	failed bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.failed = err != nil && !errors.Is(err, io.EOF)
	return n, err
}

// storeContent stores a content with its hash. errChanged if it has another one.
func storeContent(ctx context.Context, to driver.Storage, p Part, from io.Reader) error {
	staged, err := to.Stage(ctx)
	if err != nil {
		return err
	}
	defer staged.Discard()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(staged, sum), from); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != p.Hash {
		return errChanged
	}
	if _, found, err := to.Stat(ctx, p.Hash); err != nil {
		return err
	} else if found { // with another size or content: a storage does not overwrite it
		if err := to.Delete(ctx, p.Hash); err != nil {
			return err
		}
	}
	return staged.Commit(ctx, p.Hash)
}

// open reads a part. Its last read fails unless all that was read has the hash.
func (d *Destination) open(ctx context.Context, what string, p Part) (io.ReadCloser, error) {
	r, err := d.storage.Open(ctx, p.Hash, 0, -1)
	if errors.Is(err, errs.NotFound) {
		return nil, d.lost(what, p, "is missing")
	}
	if err != nil {
		return nil, d.wrap(err)
	}
	return &checked{ReadCloser: r, d: d, what: what, part: p, sum: sha256.New()}, nil
}

func (d *Destination) lost(what string, p Part, how string) error {
	return errs.New(errs.Internal, "the backup is damaged: the part %s (%s) in %s %s; use another backup: `belfry "+
		"backup list` shows them, `belfry backup verify` checks one", p.Hash, what, d.name, how)
}

// checked is a reader of a part.
type checked struct {
	io.ReadCloser
	d    *Destination
	what string
	part Part
	sum  interface {
		io.Writer
		Sum([]byte) []byte
	}
	size int64
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_, _ = c.sum.Write(p[:n])
	c.size += int64(n)
	switch {
	case err == nil && c.size <= c.part.Size:
	case err == nil || errors.Is(err, io.EOF):
		if c.size != c.part.Size || hex.EncodeToString(c.sum.Sum(nil)) != c.part.Hash {
			return 0, c.d.lost(c.what, c.part, "is not what was stored there")
		}
	default:
		return 0, c.d.wrap(err)
	}
	return n, err
}

// read returns a part of at most maxPart bytes, checked.
func (d *Destination) read(ctx context.Context, what string, p Part) ([]byte, error) {
	if p.Size > maxPart {
		return nil, d.lost(what, p, fmt.Sprintf("has %d bytes, more than such a part can have", p.Size))
	}
	r, err := d.open(ctx, what, p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	data := make([]byte, 0, p.Size+1)
	buffer := bytes.NewBuffer(data)
	_, err = io.Copy(buffer, r)
	return buffer.Bytes(), err
}
