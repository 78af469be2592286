// Package export writes the data of a user into an archive while it reads them: a zip file of any size takes little
// memory.
//
//	account.json                                        the user, idents, second factors, passkeys, sessions and keys
//	<store>.jsonl                                       an object a line
//	files/<store>/<uuid>/<property>/<index>-<name>      the files of these objects
//	manifest.json                                       counts and hashes; the last entry
//
// Objects are found by the index of their owner, and each is read as the user gets it: by the rules of its store,
// without the fields that the user may not see. Files come after the objects of a store, and are those of the time at
// which they are written. An archive without its manifest is incomplete.
package export

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Source is a store whose objects have owners.
type Source struct {
	Store *store.Store
	Owner string // the field with the uuid of the owner, which has an index
}

// Options are the options of New.
type Options struct {
	Sources []Source
	Files   map[string]*binary.Service // by name; files of other services are omitted
	Log     *slog.Logger               // nil: nothing is logged
}

// Exporter exports the data of a user. It is safe for concurrent use.
type Exporter struct{ o Options }

// New returns an Exporter.
func New(o Options) *Exporter {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Exporter{o}
}

// Manifest is the last entry of an archive.
type Manifest struct {
	Version int                 `json:"version"`
	User    string              `json:"user"`
	Created string              `json:"created"`
	Account Content             `json:"account"`
	Stores  map[string]*Objects `json:"stores"`
	Files   Files               `json:"files"`
}

// Content is an entry.
type Content struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Objects are the objects of a store.
type Objects struct {
	Objects int `json:"objects"`
	Content
}

// Files are all files. SHA256 is that of the lines "<hash>  <name>\n" of the files, in their order in the archive, as
// sha256sum writes them.
type Files struct {
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`

	// Lost are files that the objects have and the storage lacks, and Missing is how many.
	Missing int      `json:"missing"`
	Lost    []string `json:"lost,omitempty"` // at most maxLost
}

const (
	maxLost  = 100
	buffered = 64 << 10

	// maxReads is how often an object is read that keeps changing.
	maxReads = 20
)

// Write writes an archive of the data of the user whose call ctx carries. After an error the archive is incomplete, and
// must not look complete.
func (e *Exporter) Write(ctx context.Context, to io.Writer, user string, account any) error {
	out := bufio.NewWriterSize(to, buffered)
	w := &writer{Exporter: e, user: user, zip: zip.NewWriter(out), files: sha256.New()}
	w.zip.RegisterCompressor(zip.Deflate,
		func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, flate.BestSpeed) })
	w.manifest = Manifest{Version: 1, User: user, Created: object.FormatTime(time.Now()), Stores: map[string]*Objects{}}
	body, err := json.MarshalIndent(account, "", "  ")
	if err != nil {
		return err
	}
	w.manifest.Account, err = w.entry(ctx, "account.json", bytes.NewReader(body))
	for _, source := range e.o.Sources {
		if err != nil {
			return err
		}
		err = w.store(ctx, source)
	}
	if err != nil {
		return err
	}
	w.manifest.Files.SHA256 = hex.EncodeToString(w.files.Sum(nil))
	if body, err = json.MarshalIndent(w.manifest, "", "  "); err != nil {
		return err
	}
	if _, err := w.entry(ctx, "manifest.json", bytes.NewReader(body)); err != nil {
		return err
	}
	if err := w.zip.Close(); err != nil {
		return err
	}
	return out.Flush()
}

type writer struct {
	*Exporter
	user     string
	zip      *zip.Writer
	manifest Manifest
	files    hash.Hash // of the lines of files
}

// entry writes a complete entry.
func (w *writer) entry(ctx context.Context, name string, content io.Reader) (Content, error) {
	in, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now()})
	if err != nil {
		return Content{}, err
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(in, sum), &reader{ctx, content}, make([]byte, buffered))
	return Content{n, hex.EncodeToString(sum.Sum(nil))}, err
}

// reader reads while its context has not ended: files are large.
type reader struct {
	ctx     context.Context
	content io.Reader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.content.Read(p)
}

// store writes the objects of a store, and then their files.
func (w *writer) store(ctx context.Context, s Source) error {
	name, sum := s.Store.Name(), sha256.New()
	in, err := w.zip.CreateHeader(&zip.FileHeader{Name: name + ".jsonl", Method: zip.Deflate, Modified: time.Now()})
	if err != nil {
		return err
	}
	lines, hasFiles := io.MultiWriter(in, sum), false
	objects := &Objects{}
	err = w.each(ctx, s, func(found []store.Stored) error {
		seen, err := w.objects(ctx, s, found)
		for i := 0; err == nil && i < len(seen); i++ {
			if seen[i] == nil {
				continue
			}
			hasFiles = hasFiles || object.Field(found[i].Body, store.BinariesField) != nil
			line := append(append(make([]byte, 0, len(seen[i])+1), seen[i]...), '\n')
			objects.Objects++
			objects.Bytes += int64(len(line))
			_, err = lines.Write(line)
		}
		return err
	})
	objects.SHA256 = hex.EncodeToString(sum.Sum(nil))
	w.manifest.Stores[name] = objects
	if err != nil || !hasFiles {
		return err
	}
	return w.each(ctx, s, func(found []store.Stored) error {
		for _, x := range found {
			if err := w.filesOf(ctx, s, x); err != nil {
				return err
			}
		}
		return nil
	})
}

// each calls f with some of the objects at a time that the index finds, as they are stored. The index may lag, so the
// objects have to be read again.
func (w *writer) each(ctx context.Context, s Source, f func([]store.Stored) error) error {
	own := store.WithCall(ctx, store.Call{Origin: event.OriginAuth})
	filter := "object[" + string(object.AppendString(nil, s.Owner)) + "] == " + string(object.AppendString(nil, w.user))
	for o := (store.ListOptions{Filter: filter, Limit: store.MaxPage}); ; {
		page, err := s.Store.List(own, o)
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "finding the objects of a user in store %s failed", s.Store.Name())
		}
		for left := page.Objects; len(left) > 0; {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			some := left[:together(left)]
			if err := f(some); err != nil {
				return err
			}
			left = left[len(some):]
		}
		if page.Next == "" {
			return nil
		}
		o.Cursor = page.Next
	}
}

// How many objects are read at once. They are in memory together.
const (
	mostTogether  = 16
	bytesTogether = 1 << 20
)

// together returns how many of some objects are read at once.
func together(all []store.Stored) int {
	n, bytes := 1, len(all[0].Body)
	for n < min(len(all), mostTogether) && bytes+len(all[n].Body) <= bytesTogether {
		bytes += len(all[n].Body)
		n++
	}
	return n
}

// objects returns the objects as the user gets them; nil for one that they no longer own or may not read.
func (w *writer) objects(ctx context.Context, s Source, found []store.Stored) ([][]byte, error) {
	seen := make([][]byte, len(found))
	g, gctx := errgroup.WithContext(ctx)
	for i, x := range found {
		g.Go(func() error {
			o, ok, err := w.object(gctx, s, x.UUID)
			if ok {
				seen[i] = o.Body
			}
			return err
		})
	}
	return seen, g.Wait()
}

// client returns the context of one get by the user. Its rules may have the cost of one request.
func client(ctx context.Context) context.Context {
	call := store.CallOf(ctx)
	call.RuleBudget = policy.NewBudget()
	return store.WithCall(ctx, call)
}

// object returns an object as the user gets it; false if they no longer own it or may not read it.
func (w *writer) object(ctx context.Context, s Source, uuid string) (store.Stored, bool, error) {
	for range maxReads {
		seen, err := s.Store.Reread(client(ctx), uuid)
		if err != nil {
			return store.Stored{}, false, ignoreHidden(err)
		}
		if owner := object.Field(seen.Body, s.Owner); owner != nil {
			text, _ := object.Text(owner)
			return seen, text == w.user, nil
		}
		// The user may not be allowed to read the owner, so the owner of the same revision is used.
		full, theirs, err := w.owned(ctx, s, uuid)
		if err != nil || !theirs || full.Revision == seen.Revision {
			return seen, theirs, err
		}
	}
	return store.Stored{}, false, errs.New(errs.Conflict, "object %s of store %s keeps changing", uuid, s.Store.Name())
}

// owned returns an object with all fields, and whether the user owns and may get it.
func (w *writer) owned(ctx context.Context, s Source, uuid string) (store.Stored, bool, error) {
	full, err := s.Store.GetAuthorized(client(ctx), uuid, policy.Get, nil)
	if err != nil {
		return full, false, ignoreHidden(err)
	}
	owner, _ := object.Text(object.Field(full.Body, s.Owner))
	return full, owner == w.user, nil
}

// ignoreHidden returns err unless there is no object for the user.
func ignoreHidden(err error) error {
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Denied, errs.Unauthenticated:
		return nil
	}
	return err
}

// filesOf writes the files of an object that the index has found.
func (w *writer) filesOf(ctx context.Context, s Source, found store.Stored) error {
	if object.Field(found.Body, store.BinariesField) == nil {
		return nil
	}
	full, theirs, err := w.owned(ctx, s, found.UUID)
	if err != nil || !theirs {
		return err
	}
	o, err := full.Object()
	if err != nil {
		return err
	}
	services := store.Binaries(o)
	for _, property := range sorted(services) {
		service := w.o.Files[services[property]]
		for index := 0; service != nil; index++ {
			there, err := w.file(ctx, service,
				binary.Place{Store: s.Store.Name(), UUID: found.UUID, Property: property, Index: index})
			if err != nil {
				return err
			}
			if !there {
				break
			}
		}
	}
	return nil
}

// file writes the file at a place; false if the user has no such file.
func (w *writer) file(ctx context.Context, service *binary.Service, p binary.Place) (bool, error) {
	lacks := ""
	for range maxReads {
		record, err := service.Get(client(ctx), p)
		if err != nil {
			return false, ignoreHidden(err)
		}
		name := nameOf(p, record.Name)
		if record.Hash == lacks {
			w.o.Log.ErrorContext(ctx, "an export lacks a file because the storage lacks its content", "store", p.Store,
				"uuid", p.UUID, "property", p.Property, "hash", record.Hash)
			if w.manifest.Files.Missing++; len(w.manifest.Files.Lost) < maxLost {
				w.manifest.Files.Lost = append(w.manifest.Files.Lost, name)
			}
			return true, nil
		}
		content, err := service.Open(ctx, record.Hash, 0, -1)
		if errs.KindOf(err) == errs.NotFound && err != nil {
			lacks = record.Hash // replaced since, or lost
			continue
		}
		if err != nil {
			return false, err
		}
		written, err := w.entry(ctx, name, content)
		_ = content.Close() // the content was checked
		if err != nil {
			return false, err
		}
		if written.SHA256 != record.Hash {
			return false, errs.New(errs.Internal, "the content of a file has another hash than its record: %s",
				record.Hash)
		}
		w.manifest.Files.Files++
		w.manifest.Files.Bytes += written.Bytes
		_, _ = fmt.Fprintf(w.files, "%s  %s\n", written.SHA256, name) // a hash takes everything
		return true, nil
	}
	return false, errs.New(errs.Conflict, "the file at %s keeps changing", p)
}
