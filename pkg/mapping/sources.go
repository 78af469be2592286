package mapping

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// readAtOnce is how many sources one request reads at most: they are in memory together.
const readAtOnce = 32

// sources are objects that were read by one request, by their uuids; those that do not exist are nil.
type sources map[string][]byte

// readTogether reads sources by one request, if there are several and the backend can. Others are read when they are
// needed.
func (r *Reconciler) readTogether(ctx context.Context, m *store.Mapping, uuids []string) (sources, error) {
	if uuids = validOf(uuids); len(uuids) < 2 {
		return nil, nil
	}
	found, ok, err := store.NewWorker(r.set.Store(m.Source)).GetMany(ctx, uuids)
	if err != nil || !ok {
		return nil, err
	}
	read := sources{}
	for _, uuid := range uuids {
		read[uuid] = found[uuid].Body
	}
	return read, nil
}

// validOf returns the valid ones of some uuids, each once.
func validOf(uuids []string) []string {
	uuids = slices.DeleteFunc(slices.Clone(uuids), func(uuid string) bool { return !object.ValidUUID(uuid) })
	slices.Sort(uuids)
	return slices.Compact(uuids)
}

// body returns a source as it was read, or reads it; nil if it does not exist.
func (r *Reconciler) body(ctx context.Context, m *store.Mapping, source string, read sources) ([]byte, error) {
	if body, known := read[source]; known {
		return body, nil
	}
	x, err := r.set.Store(m.Source).Get(ctx, source)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return nil, err
	}
	return x.Body, nil
}

// entry is the target's entry for a source as the source is now, or was read; nil for none, which
// can be because it would be too large.
func (r *Reconciler) entry(ctx context.Context, m *store.Mapping, source string, target store.Target,
	read sources) (entry []byte, tooLarge bool, err error) {
	body, err := r.body(ctx, m, source, read)
	if err != nil {
		return nil, false, err
	}
	if entry = m.Entry(source, body, target); entry == nil {
		tooLarge = m.TooLarge(source, body, target)
	}
	return entry, tooLarge, nil
}

// confirmed reads the sources of a round again, after its write, and reports whether all entries are as it has computed
// them.
func (r *Reconciler) confirmed(ctx context.Context, s *round) (bool, error) {
	for chunk := range slices.Chunk(s.order, readAtOnce) {
		read, err := r.readTogether(ctx, s.m, chunk)
		if err != nil {
			return false, err
		}
		for _, source := range chunk {
			now, _, err := r.entry(ctx, s.m, source, s.target, read)
			if err != nil || !bytes.Equal(now, s.applied[source]) {
				return false, err
			}
		}
	}
	return true, nil
}

// Existing returns which of some objects exist, by one request if the backend can.
func Existing(ctx context.Context, s *store.Store, uuids []string) (map[string]bool, error) {
	uuids = slices.DeleteFunc(slices.Clone(uuids), func(uuid string) bool { return !object.ValidUUID(uuid) })
	exist := make(map[string]bool, len(uuids))
	found, ok, err := store.NewWorker(s).GetMany(ctx, uuids)
	for _, uuid := range uuids {
		if err != nil {
			return nil, err
		}
		if _, exist[uuid] = found[uuid]; !ok {
			exist[uuid], err = s.Exists(ctx, uuid)
		}
	}
	return exist, err
}
