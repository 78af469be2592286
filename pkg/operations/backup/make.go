package backup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"belfry/internal/count"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Source is a backend with the stores in it.
type Source struct {
	Name    string
	Backend driver.Backend
	Stores  map[string]driver.Store
}

// Progress is the progress of a backup or a restore.
type Progress struct {
	What string `json:"what"` // a store, a backend, a stream, a service of binaries
	Done int64  `json:"done"` // records, files, messages, contents
}

// Options of Make. All but Progress and Logger are required.
type Options struct {
	Installation string
	Version      string
	Backends     []Source
	Bus          bus.Requester
	Binaries     map[string]storage.Storage
	Grace        time.Duration // the shortest of the services of binaries; 0 without any
	Progress     func(Progress)
	Logger       *slog.Logger

	// Confirm returns an error if another process has taken over; may be nil.
	Confirm func(context.Context) error
}

// run is a backup that is being made.
type run struct {
	Options

	to       *Destination
	previous *Manifest // of the latest backup, or an empty one
	codec    codec
	manifest *Manifest

	// guards the numbers and problems of the manifest, calls of Progress, and the following fields
	mu sync.Mutex
	// contents that the destination has: each is asked for once, not again in the second reading
	copied map[[sha256.Size]byte]bool
}

// Make makes a backup. It exists once Make has written its manifest, which is the last
// that it writes; the remains of an interrupted backup are removed. One process at
// a time may make backups to a destination.
func Make(ctx context.Context, to *Destination, o Options) (*Manifest, error) {
	began := time.Now().UTC()
	r := &run{Options: o, to: to, copied: map[[sha256.Size]byte]bool{}, manifest: &Manifest{
		Installation: o.Installation, Version: o.Version, Started: began,
		Backends: []Backend{}, Streams: []Stream{}, Binaries: []Binaries{},
	}}
	defer r.codec.close()
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	latest, err := r.findPrevious(ctx)
	if err == nil {
		err = to.claim(ctx, o.Installation, !latest.IsZero())
	}
	if err != nil {
		return nil, err
	}
	// Ids have the order of the backups, also after the clock was set back.
	at := began
	if !at.After(latest.Add(time.Millisecond)) {
		at = latest.Add(time.Millisecond)
	}
	r.manifest.ID = newID(at)
	// A killed process may have left a stage. This process has staged nothing yet.
	if _, err := to.storage.RemoveAbandoned(ctx, began); err != nil {
		return nil, to.wrap(err)
	}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	if err := r.checkParts(ctx); err != nil {
		return nil, err
	}
	if o.Confirm != nil {
		if err := o.Confirm(ctx); err != nil {
			return nil, err
		}
	}
	r.manifest.Ended = time.Now().UTC()
	if err := to.putManifest(ctx, r.manifest); err != nil {
		return nil, err
	}
	return r.manifest, nil
}

func newID(at time.Time) string {
	random := make([]byte, 4)
	_, _ = rand.Read(random)
	return at.Format(idTime) + "-" + hex.EncodeToString(random)
}

// findPrevious reads the latest backup. A backup of another installation means that the
// destination is not for this one: each retention would remove the other's backups.
// latest is the time in the id of the latest one, zero without one.
func (r *run) findPrevious(ctx context.Context) (latest time.Time, err error) {
	r.previous = &Manifest{}
	ids, err := r.to.IDs(ctx)
	if err != nil || len(ids) == 0 {
		return latest, err
	}
	latest = timeOf(ids[len(ids)-1])
	for _, id := range slices.Backward(ids) {
		m, err := r.to.Manifest(ctx, id)
		if errors.Is(err, errs.Internal) || errors.Is(err, errs.NotFound) {
			r.Logger.Warn("a backup is damaged", "backup", id, "error", err)
			continue
		}
		if err != nil {
			return latest, err
		}
		if m.Installation != r.Installation {
			return latest, r.to.errOther()
		}
		r.previous = m
		return latest, nil
	}
	return latest, nil
}

func (r *run) read(ctx context.Context) error {
	positions, err := r.positions(ctx)
	if err != nil {
		return err
	}
	if _, err := r.readBinaries(ctx); err != nil {
		return err
	}
	r.manifest.Size = 0 // the contents are counted when they are listed again
	began := time.Now()
	for _, b := range r.Backends {
		read, err := r.readBackend(ctx, b)
		if err != nil {
			return errs.Wrap(err, errs.KindOf(err), "backend %s", b.Name)
		}
		r.manifest.Backends = append(r.manifest.Backends, read)
	}
	for _, name := range streams() {
		read, err := r.readStream(ctx, name, positions[name])
		if err != nil {
			return err
		}
		r.manifest.Streams = append(r.manifest.Streams, read)
	}
	if r.manifest.Binaries, err = r.readBinaries(ctx); err != nil {
		return err
	}
	if took := time.Since(began); len(r.Binaries) > 0 && took > r.Grace {
		return errs.New(errs.Unavailable, "the backup took %s, and contents of binaries that no object references "+
			"may have been deleted meanwhile, since they are kept for %s (binaries grace): make grace longer",
			took.Round(time.Second), r.Grace)
	}
	return nil
}

func (r *run) readBackend(ctx context.Context, b Source) (out Backend, err error) {
	out = Backend{Name: b.Name, Stores: slices.Sorted(maps.Keys(b.Stores))}
	if c, ok := b.Backend.(driver.Checkpointer); ok {
		out.Files, err = r.readFiles(ctx, b, c)
		return out, err
	}
	for _, name := range out.Stores {
		read, err := r.readStore(ctx, name, b.Stores[name])
		if err != nil {
			return out, err
		}
		out.Records = append(out.Records, read)
	}
	return out, nil
}

func (r *run) readBinaries(ctx context.Context) ([]Binaries, error) {
	all := []Binaries{}
	for _, name := range slices.Sorted(maps.Keys(r.Binaries)) {
		read, err := r.readContents(ctx, name, r.Binaries[name])
		if err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "binaries.%s", name)
		}
		all = append(all, read)
	}
	return all, nil
}

// chunk stores a chunk, and empties it.
func (r *run) chunk(ctx context.Context, c *chunk) (Part, error) {
	p, added, err := r.to.putChunk(ctx, &r.codec, c)
	if err == nil {
		r.count(p, added)
	}
	c.reset()
	return p, err
}

// flush adds a chunk to a list of parts, unless it is empty.
func (r *run) flush(ctx context.Context, c *chunk, to *[]Part) error {
	if c.items == 0 {
		return nil
	}
	p, err := r.chunk(ctx, c)
	*to = append(*to, p)
	return err
}

func (r *run) count(p Part, added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manifest.Size += p.Size
	if added {
		r.manifest.Added += p.Size
	}
}

// problem records a part that is missing in the backup, once.
func (r *run) problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.manifest.Problems, text) {
		r.manifest.Problems = append(r.manifest.Problems, text)
		r.Logger.Error("the backup lacks something", "problem", text)
	}
}

func (r *run) progress(what string, done int64) {
	if r.Progress != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Progress(Progress{What: what, Done: done})
	}
}

// checkParts lists the destination, which must have all parts: one that another process
// has removed, since it took this one for dead, would be missing.
func (r *run) checkParts(ctx context.Context) error {
	missing := map[string]bool{}
	if err := r.to.use(ctx, &r.codec, r.manifest, missing, map[Part]bool{}); err != nil {
		return err
	}
	for after := ""; ; {
		page, next, err := r.to.storage.List(ctx, after, contentPage)
		if err != nil {
			return r.to.wrap(err)
		}
		for _, info := range page {
			delete(missing, info.Hash)
		}
		if after = next; next == "" {
			break
		}
	}
	if len(missing) > 0 {
		return errs.New(errs.Unavailable,
			"%s of the backup missing in %s: another program has removed content of the destination",
			count.Of(len(missing), "part"), r.to.name)
	}
	return nil
}
