package store

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// claimRecords are where a store keeps its claims.
type claimRecords struct {
	driver     driver.Store
	generation string // of the records: another one after they were lost, or restored
	collection *collection
}

// claimSuffix ends the name of a driver's store with claims. It has a dot, which the names of others have not.
const claimSuffix = ".claims"

// generationUUID is the record of the generation. Those of claims are 64 hexadecimal digits.
const generationUUID = "generation"

// BelongsTo returns the store whose claims or aggregates a store of a backend has; false for one that has objects.
func BelongsTo(name string) (store string, belongs bool) {
	if store, belongs = strings.CutSuffix(name, claimSuffix); belongs {
		return store, true
	}
	return strings.CutSuffix(name, aggregateSuffix)
}

func openClaims(ctx context.Context, backend driver.Backend, name string) (*claimRecords, error) {
	d, err := backend.Open(ctx, driver.Spec{Name: name + claimSuffix})
	if err != nil {
		return nil, err
	}
	generation, err := readGeneration(ctx, d)
	return &claimRecords{driver: d, generation: generation, collection: newCollection()}, err
}

// readGeneration returns the generation of records, and begins the first one.
func readGeneration(ctx context.Context, d driver.Store) (string, error) {
	for {
		record, found, err := d.Get(ctx, generationUUID)
		if err != nil || found {
			return string(record.Body), err
		}
		err = d.Put(ctx, driver.Write{UUID: generationUUID, Revision: 1, Body: []byte(newGeneration())})
		if err != nil && !errors.Is(err, errs.Mismatch) {
			return "", err
		}
	}
}

// renewGeneration begins another generation of records.
func renewGeneration(ctx context.Context, d driver.Store) (next string, err error) {
	record, _, err := d.Get(ctx, generationUUID)
	if err != nil {
		return "", err
	}
	next = newGeneration()
	return next, d.Put(ctx, driver.Write{
		UUID: generationUUID, IfRevision: record.Revision, Revision: record.Revision + 1, Body: []byte(next),
	})
}

func newGeneration() string { return `"` + object.NewUUID() + `"` }

// claim is the right of an object to a value.
type claim struct {
	id      string
	version uint64 // the revision of its record; 0: no record

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
func (c *claimRecords) put(ctx context.Context, now time.Time, current claim, content claimContent) (claim, error) {
	w := driver.Write{UUID: current.id, Revision: nextRevision(now, current.version)}
	if current.content.Owner != "" {
		w.IfRevision = current.version
	}
	if content.Owner != "" {
		body, err := json.Marshal(content)
		if err != nil {
			return claim{}, err
		}
		w.Body = body
	}
	return claim{id: current.id, version: w.Revision, content: content}, c.driver.Put(ctx, w)
}
