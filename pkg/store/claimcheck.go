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
func (c *Claims) Fields() [][]string {
	var all [][]string
	for i := range c.unique {
		all = append(all, slices.Clone(c.unique[i].fields))
	}
	return all
}

// Generation identifies the records of the claims: it is another one after they were lost or
// left behind, as by a restore.
func (c *Claims) Generation() string { return c.records.generation }

// Renew begins another generation of claims, before records are copied that may have no claims. It does nothing for a
// store without unique fields, whose Claims are nil.
func (c *Claims) Renew(ctx context.Context) error {
	if c == nil {
		return nil
	}
	next, err := renewGeneration(ctx, c.records.driver)
	if err == nil {
		c.records.generation = next
	}
	return err
}

// Make makes the claims that an object lacks, and returns those that another object with the same value has. An error
// says that the object was not checked.
func (c *Claims) Make(ctx context.Context, uuid string) (made int, taken []UniqueFinding, err error) {
	return c.eachClaim(ctx, uuid, c.makeClaim)
}

// Collect is Make after a time in which something wrote the object without claims. It also writes the claims that the
// object has. A write that read such a claim before the object got the value can then no longer take or release it.
func (c *Claims) Collect(ctx context.Context, uuid string) (taken []UniqueFinding, err error) {
	_, taken, err = c.eachClaim(ctx, uuid, c.renewClaim)
	return taken, err
}

// Check returns the problems of an object's claims, and changes nothing.
func (c *Claims) Check(ctx context.Context, uuid string) ([]UniqueFinding, error) {
	_, found, err := c.eachClaim(ctx, uuid, c.checkClaim)
	return found, err
}

func (c *Claims) eachClaim(ctx context.Context, uuid string,
	check func(ctx context.Context, on *constraint, uuid string) (made bool, found *UniqueFinding, err error),
) (made int, found []UniqueFinding, err error) {
	for i := range c.unique {
		one, f, err := check(ctx, &c.unique[i], uuid)
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

// readClaim reads an object and the claim for its value. right says that it has no value, or that the claim is its own.
func (c *Claims) readClaim(
	ctx context.Context, on *constraint, uuid string,
) (record driver.Record, held claim, right bool, err error) {
	record, _, err = c.driver.Get(ctx, uuid)
	id := on.id(record.Body)
	if err != nil || id == "" {
		return record, held, true, err
	}
	held, err = c.records.get(ctx, id)
	return record, held, held.content.Owner == uuid, err
}

// makeClaim makes a claim for the value that an object has, unless another object with that value has one.
func (c *Claims) makeClaim(
	ctx context.Context, on *constraint, uuid string,
) (made bool, found *UniqueFinding, err error) {
	return c.writeClaim(ctx, on, uuid, false)
}

// renewClaim is makeClaim, and writes a claim that is the object's own again.
func (c *Claims) renewClaim(
	ctx context.Context, on *constraint, uuid string,
) (made bool, found *UniqueFinding, err error) {
	return c.writeClaim(ctx, on, uuid, true)
}

func (c *Claims) writeClaim(
	ctx context.Context, on *constraint, uuid string, renew bool,
) (made bool, found *UniqueFinding, err error) {
	for range maxAttempts {
		record, held, right, err := c.readClaim(ctx, on, uuid)
		own := held.content.Owner == uuid
		if err != nil || right && (!own || !renew) {
			return false, nil, err
		}
		content := claimContent{Unique: on.name, Owner: uuid, Revision: record.Revision}
		switch {
		case own: // perhaps for a write in progress, which the claim still is for
			content.Revision = max(record.Revision, held.content.Revision)
		case held.content.Owner != "":
			switch err := c.awaitRelease(ctx, on, held); {
			case errors.Is(err, errHeld):
				return false, c.newFinding(on, uuid, held.content.Owner), nil
			case err != nil:
				return false, nil, err
			}
		}
		_, err = c.records.put(ctx, c.now(), held, content)
		if !errors.Is(err, errs.Mismatch) {
			return err == nil && !own, nil, err
		}
	}
	return false, nil, c.contended(uuid)
}

// checkClaim returns the problem of the claim for the value that an object has. The object is read before the claim
// and after it: while it does not change, its claim is its own.
func (c *Claims) checkClaim(
	ctx context.Context, on *constraint, uuid string,
) (made bool, found *UniqueFinding, err error) {
	for range maxAttempts {
		record, held, right, err := c.readClaim(ctx, on, uuid)
		if err != nil || right {
			return false, nil, err
		}
		other := ""
		if held.content.Owner != "" {
			owner, _, err := c.driver.Get(ctx, held.content.Owner)
			if err != nil {
				return false, nil, err
			}
			if on.id(owner.Body) == on.id(record.Body) {
				other = held.content.Owner
			}
		}
		again, _, err := c.driver.Get(ctx, uuid)
		if err != nil {
			return false, nil, err
		}
		if again.Revision == record.Revision {
			return false, c.newFinding(on, uuid, other), nil
		}
	}
	return false, nil, c.contended(uuid)
}

func (c *Claims) newFinding(on *constraint, uuid, other string) *UniqueFinding {
	return &UniqueFinding{Store: c.name, Fields: on.fields, UUID: uuid, Other: other}
}

// staleAfter is the age from which a claim whose owner lacks the value does not belong to a write in progress.
const staleAfter = time.Minute

// Sweep reads all claims and counts them, and the stale ones: those of writes that a crash interrupted, and of
// constraints that are no longer configured. With remove it frees these, except a claim that changes meanwhile.
func (c *Claims) Sweep(ctx context.Context, remove bool) (all, stale int64, err error) {
	const pageSize = 500
	for record, err := range driver.Records(ctx, c.records.driver, pageSize) {
		if err != nil {
			return all, stale, err
		}
		if record.UUID == generationUUID {
			continue
		}
		all++
		held, err := decodeClaim(record)
		if err != nil {
			return all, stale, err
		}
		is, err := c.isStale(ctx, held, remove)
		if err != nil {
			return all, stale, err
		}
		if !is {
			continue
		}
		stale++
		if remove {
			c.releaseClaim(ctx, held)
		}
	}
	return all, stale, nil
}

// isStale reports whether no object has the value of a claim. With fence it makes sure that none gets it by a write in
// progress.
func (c *Claims) isStale(ctx context.Context, held claim, fence bool) (bool, error) {
	i := slices.IndexFunc(c.unique, func(on constraint) bool { return on.name == held.content.Unique })
	if i < 0 {
		return true, nil
	}
	on := &c.unique[i]
	record, _, err := c.driver.Get(ctx, held.content.Owner)
	if err != nil || on.id(record.Body) == held.id {
		return false, err
	}
	age := c.now().Sub(time.UnixMicro(int64(held.version))) //nolint:gosec // a time
	if record.Revision < held.content.Revision && age < staleAfter {
		return false, nil
	}
	if !fence {
		return true, nil
	}
	err = c.awaitRelease(ctx, on, held)
	if errors.Is(err, errHeld) {
		return false, nil
	}
	return err == nil, err
}
