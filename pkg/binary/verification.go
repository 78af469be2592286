package binary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// verification is a running Verify.
type verification struct {
	options  VerifyOptions
	services map[string]*Service
	report   *Report
	recheck  []check
}

// check returns a difference if it exists when check is called.
type check func() (*Difference, error)

func (v *verification) add(d Difference) {
	if len(v.report.Differences) < MaxDifferences {
		v.report.Differences = append(v.report.Differences, d)
	} else {
		v.report.More++
	}
}

// run runs a check. If it returns a difference, the check is repeated at the end:
// a difference that an upload or a sweeper causes disappears soon.
func (v *verification) run(c check) error {
	d, err := c()
	if d == nil || err != nil {
		return err
	}
	if len(v.recheck) == MaxDifferences {
		v.report.More++
		return nil
	}
	v.recheck = append(v.recheck, c)
	return nil
}

// finish repeats the checks that returned a difference, and reports those that
// still do when RecheckFor is over.
func (v *verification) finish(ctx context.Context) error {
	deadline := time.Now().Add(v.options.RecheckFor)
	for retry := backoff.New(10*time.Millisecond, time.Second); ; {
		last := !time.Now().Before(deadline)
		checks := v.recheck
		v.recheck = nil
		for _, c := range checks {
			d, err := c()
			switch {
			case err != nil:
				return err
			case d == nil:
			case last:
				v.add(*d)
			default:
				v.recheck = append(v.recheck, c)
			}
		}
		if len(v.recheck) == 0 {
			return nil
		}
		if err := retry.Wait(ctx); err != nil {
			return err
		}
	}
}

// records verifies the records of a store.
func (v *verification) records(ctx context.Context, st *store.Store) error {
	return scan(ctx, st, func(o store.Stored) error {
		return forEachRecord(st, o, func(p Place, service string, raw []byte) error {
			v.report.Records++
			return v.run(func() (*Difference, error) { return v.record(ctx, st, p, service, raw) })
		})
	})
}

func scan(ctx context.Context, st *store.Store, f func(store.Stored) error) error {
	const pageSize = 500
	for o, err := range st.All(ctx, pageSize) {
		if err != nil {
			return err
		}
		if err := f(o); err != nil {
			return err
		}
	}
	return nil
}

// record compares a record with its content. There is no difference when the
// record has been deleted meanwhile.
func (v *verification) record(ctx context.Context, st *store.Store, p Place, service string,
	raw []byte) (*Difference, error) {
	s := v.services[service]
	if s == nil {
		return &Difference{Kind: UnknownService, Service: service, Place: p,
			Detail: "no service of this name is configured"}, nil
	}
	record, err := decodeRecord(raw)
	if err != nil || !driver.ValidHash(record.Hash) {
		return &Difference{Kind: Malformed, Service: service, Place: p, Detail: "the record can't be decoded"}, nil //nolint:nilerr // the error is the difference
	}
	info, found, err := s.storage.Stat(ctx, record.Hash)
	if err != nil || found && info.Size == record.Size {
		return nil, err
	}
	d := &Difference{Kind: Lost, Service: service, Hash: record.Hash, Place: p, Detail: "its content does not exist"}
	if found {
		d.Kind, d.Detail = WrongSize, fmt.Sprintf("its content has %d bytes, not %d", info.Size, record.Size)
	}
	now, referenced, err := s.references(ctx, st, p.UUID, record.Hash)
	if err != nil || !referenced {
		return nil, err
	}
	d.Place = now
	return d, nil
}

// entries verifies that the entries of a store Contents can be decoded.
func (v *verification) entries(ctx context.Context, t entryTable) error {
	return scan(ctx, t.store, func(o store.Stored) error {
		if _, err := t.decode(o); err == nil {
			return nil
		}
		return v.run(func() (*Difference, error) { return t.malformed(ctx, o.UUID) })
	})
}

// malformed reads an entry again and returns a difference if it can't be decoded.
func (t entryTable) malformed(ctx context.Context, uuid string) (*Difference, error) {
	o, err := t.store.Get(internal(ctx), uuid)
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err = t.decode(o); err == nil {
		return nil, nil
	}
	dot := strings.LastIndexByte(uuid, '.')
	return &Difference{Kind: Malformed, Service: uuid[:max(dot, 0)], Hash: uuid[dot+1:], Detail: err.Error()}, nil
}

// contents verifies the contents of a service.
func (v *verification) contents(ctx context.Context, s *Service) error {
	for c, err := range s.Contents(ctx) {
		if err != nil {
			return err
		}
		v.report.Contents++
		if err := v.run(func() (*Difference, error) { return v.reference(ctx, s, c) }); err != nil {
			return err
		}
		if !v.options.Deep {
			continue
		}
		if d, err := v.hash(ctx, s, c); err != nil {
			return err
		} else if d != nil {
			v.add(*d)
		}
	}
	return nil
}

// reference returns a difference if no record references a content.
func (v *verification) reference(ctx context.Context, s *Service, c driver.Info) (*Difference, error) {
	orphan, err := s.IsOrphan(ctx, c)
	if errors.Is(err, ErrMalformedEntry) {
		return nil, nil // entries has reported it
	}
	if err != nil || !orphan {
		return nil, err
	}
	if _, found, err := s.storage.Stat(ctx, c.Hash); err != nil || !found {
		return nil, err
	}
	return &Difference{Kind: Unreferenced, Service: s.name, Hash: c.Hash,
		Detail: fmt.Sprintf("no record references its %d bytes: belfry serve deletes it", c.Size)}, nil
}

// hash reads a content and returns a difference if it has another hash.
func (v *verification) hash(ctx context.Context, s *Service, c driver.Info) (*Difference, error) {
	got, n, err := s.hash(ctx, c.Hash)
	v.report.Bytes += n
	if err == nil && got == c.Hash {
		return nil, nil
	}
	// A read fails when the content is deleted meanwhile.
	if _, found, err := s.storage.Stat(ctx, c.Hash); err != nil || !found {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	p, _, err := s.FindReference(ctx, c.Hash)
	return &Difference{Kind: WrongHash, Service: s.name, Hash: c.Hash, Place: p,
		Detail: "the content is damaged: its hash is " + got}, err
}

// hash computes the hash of a content.
func (s *Service) hash(ctx context.Context, hash string) (got string, n int64, err error) {
	r, err := s.storage.Open(ctx, hash, 0, -1)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = r.Close() }()
	sum := sha256.New()
	n, err = io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}
