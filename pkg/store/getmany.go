package store

import (
	"context"
	"errors"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// maxConcurrentIntercepts is how many objects an interceptor judges at once.
const maxConcurrentIntercepts = 16

// GetMany returns what the caller would get of objects by their distinct uuids, and what a projection keeps of that:
// nothing of those that the caller does not get. It ends once it has read maxBytes, of the objects as they are stored.
// Their gets are not announced. With an error it returns those that it has read before.
func GetMany(
	ctx context.Context, s *Store, uuids []string, p *Projection, maxBytes int,
) (found map[string][]byte, err error) {
	found = make(map[string][]byte, len(uuids))
	var read chunks
	for len(uuids) > 0 && read.bytes < maxBytes {
		n := min(read.next(), len(uuids))
		some, bytes, err := s.reader.getMany(ctx, uuids[:n], p)
		if err != nil {
			return found, err
		}
		maps.Copy(found, some)
		read.add(n, bytes)
		uuids = uuids[n:]
	}
	return found, nil
}

// getMany returns what the caller would get of objects, by their uuids, and what a projection keeps of that: nothing of
// those that do not exist, that the policy denies, or that an interceptor refuses. Their gets are not announced. bytes
// are those of the objects as they are stored.
func (r *reader) getMany(
	ctx context.Context, uuids []string, p *Projection,
) (found map[string][]byte, bytes int, err error) {
	if err := r.expanding.Acquire(ctx, 1); err != nil {
		return nil, 0, err
	}
	defer r.expanding.Release(1)
	records, err := driver.GetMany(ctx, r.driver, uuids)
	if err != nil {
		return nil, 0, err
	}
	call := CallOf(ctx)
	found = make(map[string][]byte, len(records))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(1)
	if r.interception.applies(call) {
		group.SetLimit(maxConcurrentIntercepts)
	}
	for _, record := range records {
		bytes += len(record.Body)
		group.Go(func() error {
			o, err := r.getAllowed(ctx, call, record)
			if err != nil {
				if isRefused(err) {
					return nil
				}
				return err
			}
			body := p.Apply(o.Body)
			mu.Lock()
			defer mu.Unlock()
			found[record.UUID] = body
			return nil
		})
	}
	return found, bytes, group.Wait()
}

// getAllowed returns the part of a record that the caller receives, if the policy allows the get.
func (r *reader) getAllowed(ctx context.Context, call Call, record driver.Record) (Stored, error) {
	if call.Client {
		if err := r.rules.Allow(ctx, call.caller(), policy.Get, record.Body, nil); err != nil {
			return Stored{}, err
		}
	}
	return r.amended(ctx, call, record)
}

// isRefused reports whether an error of a get says that the caller does not get the object, not that it could not be
// decided.
func isRefused(err error) bool {
	if errors.Is(err, policy.ErrBudget) {
		return false
	}
	switch errs.KindOf(err) {
	case errs.Internal, errs.Unavailable, errs.Canceled, errs.Limited:
		return false
	default:
		return true
	}
}

// How many objects are read at once by their uuids. Any may have more than a MiB.
const (
	maxChunk   = 16
	firstChunk = 8       // before anything is known of their size
	chunkBytes = 2 << 20 // that they are meant to have
)

// chunks counts the reads by uuids, a chunk at a time.
type chunks struct {
	objects int
	bytes   int // of these, as they are stored
}

// next returns how many objects to read next: few where those before were large.
func (c *chunks) next() int {
	switch {
	case c.objects == 0:
		return firstChunk
	case c.bytes == 0:
		return maxChunk
	default:
		return max(1, min(maxChunk, chunkBytes*c.objects/c.bytes))
	}
}

func (c *chunks) add(objects, bytes int) {
	c.objects += objects
	c.bytes += bytes
}
