package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// UniqueFinding is an object whose value of unique fields is not held as it should be.
type UniqueFinding struct {
	Store  string   `json:"store"`
	Fields []string `json:"fields"`
	UUID   string   `json:"uuid"`

	// Other is an object with the same value, which owns the claim; "" when the object lacks a claim for its value.
	Other string `json:"other,omitempty"`
}

// Fields returns the unique fields, each list sorted.
func (s *Claims) Fields() [][]string {
	var all [][]string
	for i := range s.unique {
		all = append(all, slices.Clone(s.unique[i].fields))
	}
	return all
}

// Generation identifies the records of the claims: it is another one after they were lost or
// left behind, as by a restore, and after one of the constraints was not configured for a while.
func (s *Claims) Generation() string { return *s.records.generation.Load() }

// ReadGeneration reads the generation again, which another process may have replaced.
func (s *Claims) ReadGeneration(ctx context.Context) (string, error) { return s.records.read(ctx) }

// Renew begins another generation of claims, before records are copied that may have no claims. It does nothing for a store
// without unique fields, whose Claims are nil.
func (s *Claims) Renew(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.records.renew(ctx)
}

// Trust says whether every object has its claims, so that a value without a claim is nobody's. Until then no
// write of this process can give an object a unique value.
func (s *Claims) Trust(complete bool) { s.records.complete.Store(complete) }

// Trusted reports whether values can be claimed.
func (s *Claims) Trusted() bool { return s.records.complete.Load() }

// Make makes the claims that an object lacks, and returns those that another object with the same value has. An error
// says that the object was not checked.
func (s *Claims) Make(ctx context.Context, uuid string) (made int, taken []UniqueFinding, err error) {
	return s.eachClaim(ctx, uuid, s.claimFor)
}

// Check returns what is wrong with the claims of an object, and changes nothing.
func (s *Claims) Check(ctx context.Context, uuid string) ([]UniqueFinding, error) {
	_, found, err := s.eachClaim(ctx, uuid, s.checkClaim)
	return found, err
}

func (s *Claims) eachClaim(ctx context.Context, uuid string,
	check func(ctx context.Context, c *constraint, uuid string) (made bool, found *UniqueFinding, err error),
) (made int, found []UniqueFinding, err error) {
	for i := range s.unique {
		one, f, err := check(ctx, &s.unique[i], uuid)
		if err != nil {
			return made, found, err
		}
		if one {
			made++
		}
		if f != nil {
			found = append(found, *f)
		}
	}
	return made, found, nil
}

// holder reads an object and the claim for its value. right says that it has no value, or that the claim is its own.
func (s *Claims) holder(ctx context.Context, c *constraint, uuid string) (record driver.Record, held claim, right bool, err error) {
	record, _, err = s.driver.Get(ctx, uuid)
	id := c.id(record.Body)
	if err != nil || id == "" {
		return record, held, true, err
	}
	held, err = s.records.get(ctx, id)
	return record, held, held.content.Owner == uuid, err
}

// claimFor makes a claim for the value that an object has, unless another object with that value has one.
func (s *Claims) claimFor(ctx context.Context, c *constraint, uuid string) (made bool, found *UniqueFinding, err error) {
	for range maxAttempts {
		record, held, right, err := s.holder(ctx, c, uuid)
		if err != nil || right {
			return false, nil, err
		}
		if held.content.Owner != "" {
			switch err := s.vacate(ctx, c, held); {
			case errors.Is(err, errTakenBy):
				return false, s.finding(c, uuid, held.content.Owner), nil
			case err != nil:
				return false, nil, err
			}
		}
		_, err = s.records.put(ctx, s.now(), held, claimContent{Unique: c.name, Owner: uuid, Revision: record.Revision})
		if !errors.Is(err, errs.Mismatch) {
			return err == nil, nil, err
		}
	}
	return false, nil, s.contended(uuid)
}

// checkClaim returns what is wrong with the claim for the value that an object has. The object is read before the claim
// and after it: while it does not change, its claim is its own.
func (s *Claims) checkClaim(ctx context.Context, c *constraint, uuid string) (made bool, found *UniqueFinding, err error) {
	for range maxAttempts {
		record, held, right, err := s.holder(ctx, c, uuid)
		if err != nil || right {
			return false, nil, err
		}
		other := ""
		if held.content.Owner != "" {
			owner, _, err := s.driver.Get(ctx, held.content.Owner)
			if err != nil {
				return false, nil, err
			}
			if c.id(owner.Body) == c.id(record.Body) {
				other = held.content.Owner
			}
		}
		again, _, err := s.driver.Get(ctx, uuid)
		if err != nil {
			return false, nil, err
		}
		if again.Revision == record.Revision {
			return false, s.finding(c, uuid, other), nil
		}
	}
	return false, nil, s.contended(uuid)
}

func (s *Claims) finding(c *constraint, uuid, other string) *UniqueFinding {
	return &UniqueFinding{Store: s.name, Fields: c.fields, UUID: uuid, Other: other}
}

// staleAfter is after how long a claim whose owner has not its value is no more that of a write in progress.
const staleAfter = time.Minute

// Sweep reads all claims, and returns how many there are, and how many of them are stale: those of writes that a
// crash interrupted, and of constraints that are configured no more. With remove they are freed; a claim that changes
// meanwhile stays.
func (s *Claims) Sweep(ctx context.Context, remove bool) (all, stale int64, err error) {
	const pageSize = 500
	for record, err := range driver.Records(ctx, s.records.driver, pageSize) {
		if err != nil {
			return all, stale, err
		}
		if !isClaim(record.UUID) {
			continue
		}
		all++
		held, err := decodeClaim(record)
		if err != nil {
			return all, stale, err
		}
		is, err := s.isStale(ctx, held, remove)
		if err != nil {
			return all, stale, err
		}
		if !is {
			continue
		}
		stale++
		if remove {
			s.free(ctx, held)
		}
	}
	return all, stale, nil
}

// isStale reports whether no object has the value of a claim. With fence it makes sure that none gets it by a write in
// progress.
func (s *Claims) isStale(ctx context.Context, held claim, fence bool) (bool, error) {
	i := slices.IndexFunc(s.unique, func(c constraint) bool { return c.name == held.content.Unique })
	if i < 0 {
		return true, nil
	}
	c := &s.unique[i]
	record, _, err := s.driver.Get(ctx, held.content.Owner)
	if err != nil || c.id(record.Body) == held.id {
		return false, err
	}
	if record.Revision < held.content.Revision && s.now().Sub(time.UnixMicro(int64(held.version))) < staleAfter { //nolint:gosec // a time
		return false, nil
	}
	if !fence {
		return true, nil
	}
	err = s.vacate(ctx, c, held)
	if errors.Is(err, errTakenBy) {
		return false, nil
	}
	return err == nil, err
}
