package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// The records beside the claims, whose uuids are 64 hexadecimal digits: the generation of the claims, and the names of the
// constraints whose claims are kept up to date.
const (
	generationUUID  = "generation"
	constraintsUUID = "constraints"
)

func isClaim(uuid string) bool { return uuid != generationUUID && uuid != constraintsUUID }

func newGeneration() string { return `"` + object.NewUUID() + `"` }

// open reads the generation, and records which constraints there are from now on. lapsed reports whether something of this process has
// written without a constraint. If it has, or there is a constraint no more, its claims are not those of the objects. Then another
// generation begins, so that they are collected again before they are trusted.
func (c *claimRecords) open(ctx context.Context, names []string, lapsed func(name string) bool) error {
	for {
		done, err := c.openOnce(ctx, names, lapsed)
		if done || err != nil && !errors.Is(err, errs.Mismatch) { // otherwise another process was first
			return err
		}
	}
}

func (c *claimRecords) openOnce(ctx context.Context, names []string, lapsed func(name string) bool) (done bool, err error) {
	generation, found, err := c.driver.Get(ctx, generationUUID)
	if err != nil {
		return false, err
	}
	if !found {
		_, err := c.replace(ctx, driver.Record{UUID: generationUUID}, []byte(newGeneration()))
		return false, err
	}
	recorded, found, err := c.driver.Get(ctx, constraintsUUID)
	if err != nil {
		return false, err
	}
	var before []string
	if found && !recorded.Deleted {
		if err := json.Unmarshal(recorded.Body, &before); err != nil {
			return false, errs.Wrap(err, errs.Internal, "the record %s of the claims can't be read", constraintsUUID)
		}
	}
	if slices.ContainsFunc(before, func(name string) bool { return !slices.Contains(names, name) || lapsed(name) }) {
		if generation, err = c.replace(ctx, generation, []byte(newGeneration())); err != nil {
			return false, err
		}
	}
	if !slices.Equal(before, names) {
		body, err := json.Marshal(names)
		if err != nil {
			return false, err
		}
		recorded.UUID = constraintsUUID
		if _, err := c.replace(ctx, recorded, body); err != nil {
			return false, err
		}
	}
	c.setGeneration(generation)
	return true, nil
}

func (c *claimRecords) setGeneration(record driver.Record) {
	text := string(record.Body)
	c.generation.Store(&text)
}

// read reads the generation, which another process may have replaced.
func (c *claimRecords) read(ctx context.Context) (string, error) {
	record, _, err := c.driver.Get(ctx, generationUUID)
	if err != nil {
		return "", err
	}
	c.setGeneration(record)
	return string(record.Body), nil
}

// replace replaces a record as it was read. Mismatch when it has changed since.
func (c *claimRecords) replace(ctx context.Context, read driver.Record, body []byte) (driver.Record, error) {
	w := driver.Write{UUID: read.UUID, Revision: read.Revision + 1, Body: body}
	if read.Body != nil {
		w.IfRevision = read.Revision
	}
	return driver.Record{UUID: read.UUID, Revision: w.Revision, Body: body}, c.driver.Put(ctx, w)
}

// renew begins another generation.
func (c *claimRecords) renew(ctx context.Context) error {
	record, _, err := c.driver.Get(ctx, generationUUID)
	if err != nil {
		return err
	}
	if record, err = c.replace(ctx, record, []byte(newGeneration())); err == nil {
		c.setGeneration(record)
	}
	return err
}

// constraintNames returns the names of constraints, sorted.
func constraintNames(unique [][]string) []string {
	names := []string{}
	for _, c := range constraintsOf(unique) {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}
