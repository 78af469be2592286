package backup

import (
	"context"
	"io"
	"slices"
	"sync"

	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// restore is a restore that is being made.
type restore struct {
	RestoreOptions

	from   *Destination
	codec  codec
	bus    bus.Requester
	stores map[string]*store.Store

	mu sync.Mutex // serializes calls of Progress
}

// RestoreOptions say where a backup is restored to. All of it is empty.
type RestoreOptions struct {
	// Folders are those of backends with files.
	Folders map[string]string

	// Open opens the stores and the bus, once the files are restored.
	Open func(context.Context) (map[string]*store.Store, bus.Requester, error)

	Binaries map[string]storage.Storage
	Progress func(Progress) // may be nil

	// States is the name of the store of States. Their object is not restored.
	States string

	// Again reports, after Open, whether an earlier restore of the same backup has
	// written a part.
	Again func() bool
}

// Restored says where the listeners are in the restored log.
type Restored struct {
	Next map[string]uint64 // by consumer: the sequence of the first event that it receives
}

// Restore restores a backup. All that it reads is checked by hashes. After an error the
// destination has a part of the backup.
func Restore(ctx context.Context, from *Destination, m *Manifest, o RestoreOptions) (*Restored, error) {
	r := &restore{RestoreOptions: o, from: from}
	defer r.codec.close()
	for _, b := range m.Binaries {
		if err := r.contents(ctx, b, o.Binaries[b.Name]); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "binaries.%s", b.Name)
		}
	}
	for _, b := range m.Backends {
		if len(b.Files) == 0 {
			continue
		}
		if err := r.files(ctx, b, o.Folders[b.Name]); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "backend %s", b.Name)
		}
	}
	var err error
	if r.stores, r.bus, err = o.Open(ctx); err != nil {
		return nil, err
	}
	for _, b := range m.Backends {
		for _, records := range b.Records {
			if err := r.records(ctx, records, r.stores[records.Store]); err != nil {
				return nil, errs.Wrap(err, errs.KindOf(err), "store %s", records.Store)
			}
		}
	}
	return r.restoreStreams(ctx, m)
}

// restoreStreams restores the log first: dead letters name its sequences.
func (r *restore) restoreStreams(ctx context.Context, m *Manifest) (*Restored, error) {
	out := &Restored{Next: map[string]uint64{}}
	var log *sequences
	for _, name := range streams() {
		i := slices.IndexFunc(m.Streams, func(s Stream) bool { return s.Name == name })
		if i < 0 {
			continue
		}
		done, err := r.stream(ctx, m.Streams[i], log)
		if err != nil {
			return nil, err
		}
		if name != bus.StreamEvents {
			continue
		}
		log = done
		for _, c := range m.Streams[i].Consumers {
			if out.Next[c.Config.Durable], err = r.consumer(ctx, c, log); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (r *restore) progress(what string, done int64) {
	if r.Progress != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Progress(Progress{What: what, Done: done})
	}
}

// Verify reads every part of a backup and compares it with its hash. It returns an
// error for the first that is missing or damaged.
func Verify(ctx context.Context, d *Destination, m *Manifest, progress func(Progress)) error {
	var z codec
	defer z.close()
	done := int64(0)
	check := func(what string, p Part) error {
		in, err := d.open(ctx, what, p)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		if _, err = io.Copy(io.Discard, in); err == nil && progress != nil {
			done++
			progress(Progress{What: m.ID, Done: done})
		}
		return err
	}
	if err := m.eachPart(check); err != nil {
		return err
	}
	for _, b := range m.Binaries {
		for _, list := range b.Lists {
			err := d.hashes(ctx, &z, b.Name, list,
				func(p Part) error { return check("content of binaries."+b.Name, p) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}
