package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// A value that must be unique is held by a claim: a record beside those of the objects, named by a hash of the value,
// with the uuid of the object that owns it. A driver writes one record atomically, so a claim can be wrong: its owner
// may not have the value yet, or no more. docs/unique.md shows that no two objects have the value all the same. What
// it builds on:
//
//   - A write that gives an object a value first writes the claim, with a new version of it, and the revision that the
//     object will have. An object that has the value already claims nothing.
//   - A claim is taken from its owner only after the owner was read without the value, at the revision of the claim or
//     a later one. Then the write that the claim was made for has failed, or will: a driver writes no revision that is
//     not above that of the record. An owner at a lower revision is fenced: written unchanged, at that revision.
//   - The new owner writes the claim on the condition that it has the version that was read before its owner was.
//   - A claim is freed after its value was removed from its owner, on the condition that it has the version from
//     before, and that the owner is at the revision of the claim at least.

// Claims keep the values of unique fields unique. Every write of an object that changes such a value passes through them.
type Claims struct {
	*core
	records    *claimRecords
	unique     []constraint
	indexing   *indexing
	locker     Locker
	fenceAfter time.Duration
}

// newClaims returns the claims of a store, nil without unique fields.
func newClaims(o *Options, c *core, records *claimRecords, x *indexing) *Claims {
	if records == nil || len(o.Unique) == 0 {
		return nil
	}
	return &Claims{
		core: c, records: records, unique: constraintsOf(o.Unique), indexing: x, locker: o.Locker,
		fenceAfter: cmp.Or(o.FenceAfter, fenceAfter),
	}
}

// claimRecords are where a store keeps its claims.
type claimRecords struct {
	driver     driver.Store
	generation atomic.Pointer[string] // of the records: another one after they were lost, restored, or not kept up to date
	complete   atomic.Bool            // every object has its claims: new ones can be trusted
}

// claimSuffix ends the name of a driver's store with claims. It has a dot, which the names of others have not.
const claimSuffix = ".claims"

// ClaimsOf returns the store whose claims a store of a backend has; false for one that has objects.
func ClaimsOf(name string) (store string, isOf bool) {
	return strings.CutSuffix(name, claimSuffix)
}

func openClaims(ctx context.Context, backend driver.Backend, name string, unique []string, lapsed func(constraint string) bool) (*claimRecords, error) {
	d, err := backend.Open(ctx, driver.Spec{Name: name + claimSuffix})
	if err != nil {
		return nil, err
	}
	c := &claimRecords{driver: d}
	if err := c.open(ctx, unique, lapsed); err != nil || len(unique) == 0 {
		return nil, err
	}
	return c, nil
}

// claim is the right of an object to a value.
type claim struct {
	id      string
	version uint64 // the revision of its record; 0: there is none

	content claimContent
}

type claimContent struct {
	Unique   string `json:"unique"`   // name of the constraint
	Owner    string `json:"owner"`    // uuid; "": the claim is free
	Revision uint64 `json:"revision"` // the highest one of the owner's writes that it was made for
}

func (c *claimRecords) get(ctx context.Context, id string) (claim, error) {
	record, found, err := c.driver.Get(ctx, id)
	if err != nil || !found {
		return claim{id: id}, err
	}
	return decodeClaim(record)
}

func decodeClaim(record driver.Record) (claim, error) {
	c := claim{id: record.UUID, version: record.Revision}
	if record.Deleted {
		return c, nil
	}
	if err := json.Unmarshal(record.Body, &c.content); err != nil {
		return c, errs.Wrap(err, errs.Internal, "the claim %s can't be read", record.UUID)
	}
	return c, nil
}

// put replaces a claim as it was read, and returns the one that it now is. Mismatch when it has changed since.
func (c *claimRecords) put(ctx context.Context, now time.Time, read claim, content claimContent) (claim, error) {
	w := driver.Write{UUID: read.id, Revision: nextRevision(now, read.version)}
	if read.content.Owner != "" {
		w.IfRevision = read.version
	}
	if content.Owner != "" {
		body, err := json.Marshal(content)
		if err != nil {
			return claim{}, err
		}
		w.Body = body
	}
	return claim{id: read.id, version: w.Revision, content: content}, c.driver.Put(ctx, w)
}

// pledge is what a write has claimed, and what it gives up.
type pledge struct {
	made    []claim // by this write: nobody, or another object, had them before
	dropped []claim // as they were before the write
	unlock  []func()
}

// claim makes the claims of a write. The error is Taken, with all fields that have a value of another object.
func (s *Claims) claim(ctx context.Context, base driver.Record, out *driver.Write) (*pledge, error) {
	if s == nil {
		return nil, nil
	}
	p := &pledge{}
	var gained []*constraint
	ids := map[*constraint]string{}
	for i := range s.unique {
		c := &s.unique[i]
		before, after := c.id(base.Body), c.id(out.Body)
		if before == after {
			continue
		}
		if before != "" {
			held, err := s.records.get(ctx, before)
			if err != nil {
				return nil, err
			}
			if held.content.Owner == out.UUID {
				p.dropped = append(p.dropped, held)
			}
		}
		if after != "" {
			ids[c] = after
			gained = append(gained, c)
		}
	}
	if len(gained) == 0 {
		return p, nil
	}
	if !s.records.complete.Load() {
		return nil, errs.New(errs.Unavailable, "the unique values of %s are being collected from its objects: try again", s.name)
	}
	if err := p.lock(ctx, s.locker, ids); err != nil {
		return nil, err
	}
	var taken []*constraint
	for _, c := range gained {
		made, fresh, err := s.take(ctx, c, ids[c], out.UUID, out.Revision)
		switch {
		case errors.Is(err, errTakenBy):
			taken = append(taken, c)
		case err != nil:
			s.release(ctx, p)
			return nil, err
		case fresh:
			p.made = append(p.made, made)
		}
	}
	if len(taken) > 0 {
		s.release(ctx, p)
		return nil, s.errTaken(taken)
	}
	return p, nil
}

// lock has the writers of this process claim a value one after another. It is taken after the lock of the object, and
// in the order of ids.
func (p *pledge) lock(ctx context.Context, locker Locker, ids map[*constraint]string) error {
	var all []string
	for _, id := range ids {
		all = append(all, id)
	}
	slices.Sort(all)
	for _, id := range all {
		unlock, err := locker.Lock(ctx, "claim "+id)
		if err != nil {
			p.done()
			return err
		}
		p.unlock = append(p.unlock, unlock)
	}
	return nil
}

func (p *pledge) done() {
	for _, unlock := range p.unlock {
		unlock()
	}
	p.unlock = nil
}

// errTakenBy says that the owner of a claim has its value.
var errTakenBy = errors.New("taken")

// take makes a claim for the write of an object at a revision. fresh says that the object did not have it before.
func (s *Claims) take(ctx context.Context, c *constraint, id, uuid string, revision uint64) (made claim, fresh bool, err error) {
	read := claim{id: id} // mostly nobody has the value, so nothing is read first
	for attempt := range maxAttempts {
		if attempt > 0 {
			if read, err = s.records.get(ctx, id); err != nil {
				return claim{}, false, err
			}
		}
		content := claimContent{Unique: c.name, Owner: uuid, Revision: revision}
		switch owner := read.content.Owner; owner {
		case "":
		case uuid: // of another write, perhaps one in progress, which the claim still is for
			content.Revision = max(revision, read.content.Revision)
		default:
			if err := s.vacate(ctx, c, read); err != nil {
				return claim{}, false, err
			}
		}
		made, err = s.records.put(ctx, s.now(), read, content)
		if !errors.Is(err, errs.Mismatch) {
			return made, read.content.Owner != uuid, err
		}
	}
	return claim{}, false, s.contended(uuid)
}

// checkFree returns the error that a write would have because of values that other objects have.
func (s *Claims) checkFree(ctx context.Context, body []byte, uuid string) error {
	if s == nil {
		return nil
	}
	var taken []*constraint
	for i := range s.unique {
		c := &s.unique[i]
		id := c.id(body)
		if id == "" {
			continue
		}
		held, err := s.records.get(ctx, id)
		if err != nil {
			return err
		}
		if held.content.Owner == "" || held.content.Owner == uuid {
			continue
		}
		record, _, err := s.driver.Get(ctx, held.content.Owner)
		if err != nil {
			return err
		}
		if c.id(record.Body) == id {
			taken = append(taken, c)
		}
	}
	if len(taken) > 0 {
		return s.errTaken(taken)
	}
	return nil
}

// fenceAfter is FenceAfter by default, and fencePoll how often the owner of a claim is read in this time.
const (
	fenceAfter = time.Second
	fencePoll  = 20 * time.Millisecond
)

// vacate returns once no write that a claim was made for can give its owner the value. errTakenBy when the owner has it.
func (s *Claims) vacate(ctx context.Context, c *constraint, held claim) error {
	owner := held.content.Owner
	for polls := s.fencePolls(held); ; polls-- {
		record, _, err := s.driver.Get(ctx, owner)
		if err != nil {
			return err
		}
		switch {
		case c.id(record.Body) == held.id:
			return errTakenBy
		case record.Revision >= held.content.Revision:
			return nil
		case polls > 0:
			if err := backoff.Sleep(ctx, fencePoll); err != nil {
				return err
			}
			continue
		}
		record.UUID = owner
		if err := s.fence(ctx, record, held.content.Revision); err == nil || !errors.Is(err, errs.Mismatch) {
			return err
		}
		if polls < -maxAttempts {
			return s.contended(owner)
		}
	}
}

// fencePolls is how often the owner of a claim is read before it is fenced: the write may be in progress.
func (s *Claims) fencePolls(held claim) int {
	wait := s.fenceAfter
	if age := s.now().UnixMicro() - int64(held.version); age < 0 || age > wait.Microseconds() { //nolint:gosec // a time
		return 0
	}
	return int(wait / fencePoll)
}

// fence has every write fail that was to give an object, as it was read, a revision up to this one. The object does not
// change, and there is no event; of an object that does not exist a tombstone is written.
func (s *Claims) fence(ctx context.Context, read driver.Record, revision uint64) error {
	w := driver.Write{UUID: read.UUID, Revision: max(nextRevision(s.now(), read.Revision), revision)}
	if read.Body != nil {
		w.IfRevision, w.Body, w.Keys = read.Revision, read.Body, s.indexing.keys(read.Body)
	} else {
		w.Owner = fencedOwner(read)
	}
	return s.put(ctx, w)
}

// settle ends a write that returned an error or nil, and gives up the claims that are needed no more.
func (s *Claims) settle(ctx context.Context, p *pledge, revision uint64, err error) {
	if p == nil {
		return
	}
	switch {
	case err == nil:
		dropped := p.dropped
		p.dropped = nil
		for _, held := range dropped {
			if revision >= held.content.Revision { // otherwise another write that it was made for may still succeed
				s.free(ctx, held)
			}
		}
		p.done()
	case errors.Is(err, errs.Mismatch):
		s.release(ctx, p)
	default: // the write may have been made, or be made later
		p.done()
	}
}

// release frees the claims of a write that was not made.
func (s *Claims) release(ctx context.Context, p *pledge) {
	for _, made := range p.made {
		s.free(ctx, made)
	}
	p.done()
}

// free frees a claim if it is as it was read. One that stays is taken over by who needs it, and reported by a
// verification.
func (s *Claims) free(ctx context.Context, held claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	_, err := s.records.put(ctx, s.now(), held, claimContent{})
	if err != nil && !errors.Is(err, errs.Mismatch) {
		s.log.DebugContext(ctx, "a claim of a unique value is not freed", "store", s.name, "error", err)
	}
}
