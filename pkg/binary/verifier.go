package binary

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/binary/driver"
	"belfry/pkg/store"
)

// verifier is a verification at work.
type verifier struct {
	options  VerifyOptions
	services map[string]*Service
	report   *Report
	suspects []func() (*Difference, error)
}

func (v *verifier) add(d Difference) {
	if len(v.report.Differences) < MaxDifferences {
		v.report.Differences = append(v.report.Differences, d)
	} else {
		v.report.More++
	}
}

// suspect notes a difference that is there now. When it has a content or a
// record in hand that others change, it is gone soon.
func (v *verifier) suspect(look func() (*Difference, error)) error {
	d, err := look()
	if d == nil || err != nil {
		return err
	}
	if len(v.suspects) == MaxDifferences {
		v.report.More++
		return nil
	}
	v.suspects = append(v.suspects, look)
	return nil
}

// conclude reports the suspects that outlast patience.
func (v *verifier) conclude(ctx context.Context) error {
	deadline := time.Now().Add(v.options.Patience)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		last := !time.Now().Before(deadline)
		looks := v.suspects
		v.suspects = nil
		for _, look := range looks {
			d, err := look()
			switch {
			case err != nil:
				return err
			case d == nil:
			case last:
				v.add(*d)
			default:
				v.suspects = append(v.suspects, look)
			}
		}
		if len(v.suspects) == 0 {
			return nil
		}
		if err := backoff.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// records verifies the records of a store.
func (v *verifier) records(ctx context.Context, st *store.Store) error {
	const page = 500
	var after []byte
	for {
		objects, next, err := st.Scan(ctx, after, page)
		if err != nil {
			return err
		}
		for _, o := range objects {
			err := each(st, o, func(p Place, service string, raw []byte) error {
				v.report.Records++
				return v.suspect(func() (*Difference, error) { return v.record(ctx, st, p, service, raw) })
			})
			if err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		after = next
	}
}

// record compares a record with its content. A record that its object has lost
// meanwhile is none.
func (v *verifier) record(ctx context.Context, st *store.Store, p Place, service string, raw []byte) (*Difference, error) {
	s := v.services[service]
	if s == nil {
		return &Difference{Kind: Unserved, Service: service, Place: p, Detail: "no service of this name is configured"}, nil
	}
	record, err := decodeRecord(raw)
	if err != nil || !driver.ValidHash(record.Hash) {
		return &Difference{Kind: Malformed, Service: service, Place: p, Detail: "the record can't be read"}, nil //nolint:nilerr // that is what it tells
	}
	info, found, err := s.Storage.Stat(ctx, record.Hash)
	if err != nil || found && info.Size == record.Size {
		return nil, err
	}
	d := &Difference{Kind: Lost, Service: service, Hash: record.Hash, Place: p, Detail: "its content is not there"}
	if found {
		d.Kind, d.Detail = WrongSize, fmt.Sprintf("its content has %d bytes, not %d", info.Size, record.Size)
	}
	now, held, err := s.holds(ctx, st, p.UUID, record.Hash)
	if err != nil || !held {
		return nil, err
	}
	d.Place = now
	return d, nil
}

// contents verifies the contents of a service.
func (v *verifier) contents(ctx context.Context, s *Service) error {
	const page = 500
	for after := ""; ; {
		contents, next, err := s.Storage.List(ctx, after, page)
		if err != nil {
			return err
		}
		for _, c := range contents {
			v.report.Contents++
			if err := v.suspect(func() (*Difference, error) { return v.reference(ctx, s, c) }); err != nil {
				return err
			}
			if !v.options.Deep {
				continue
			}
			if d, err := v.compare(ctx, s, c); err != nil {
				return err
			} else if d != nil {
				v.add(*d)
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// reference looks for a record that names a content.
func (v *verifier) reference(ctx context.Context, s *Service, c driver.Info) (*Difference, error) {
	stray, err := s.Stray(ctx, c)
	if err != nil || !stray {
		return nil, err
	}
	if _, found, err := s.Storage.Stat(ctx, c.Hash); err != nil || !found {
		return nil, err
	}
	return &Difference{Kind: Unreferenced, Service: s.Name, Hash: c.Hash, Detail: fmt.Sprintf("no record names these %d bytes: they go when belfry has served for a while", c.Size)}, nil
}

// compare reads a content and compares it with its hash.
func (v *verifier) compare(ctx context.Context, s *Service, c driver.Info) (*Difference, error) {
	got, n, err := s.hash(ctx, c.Hash)
	v.report.Bytes += n
	if err == nil && got == c.Hash {
		return nil, nil
	}
	// One that is deleted meanwhile may break off.
	if _, found, err := s.Storage.Stat(ctx, c.Hash); err != nil || !found {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	p, _, err := s.Holder(ctx, c.Hash)
	return &Difference{Kind: WrongHash, Service: s.Name, Hash: c.Hash, Place: p, Detail: "the content was damaged: its hash is " + got}, err
}

// hash computes the hash of a content.
func (s *Service) hash(ctx context.Context, hash string) (got string, n int64, err error) {
	r, err := s.Storage.Open(ctx, hash, 0, -1)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = r.Close() }()
	sum := sha256.New()
	n, err = io.Copy(sum, r)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}
