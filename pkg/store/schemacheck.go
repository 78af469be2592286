package store

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// SchemaReport says which objects of a store don't match a schema.
type SchemaReport struct {
	Objects int             `json:"objects"` // that were read
	Failing int             `json:"failing"`
	First   []FailingObject `json:"first,omitempty"` // the first of them, in the order of their uuids
}

// FailingObject is an object that does not match a schema.
type FailingObject struct {
	UUID    string       `json:"uuid"`
	Message string       `json:"message"`
	Errors  []errs.Field `json:"errors,omitempty"`
}

const (
	maxFailing    = 10 // of SchemaReport.First
	checkPageSize = 500
)

// CheckSchema reads all objects, and validates them by a schema as their next update would. Nothing is written.
func (s *Store) CheckSchema(ctx context.Context, schema Validator) (*SchemaReport, error) {
	report := &SchemaReport{}
	for stored, err := range s.All(ctx, checkPageSize) {
		if err != nil {
			return nil, err
		}
		o, err := object.Decode(stored.Body)
		if err != nil {
			return nil, err
		}
		report.Objects++
		err = schema.Validate(ctx, s.withoutOwned(o).Encode())
		if err == nil {
			continue
		}
		var found *errs.Error
		if !errors.As(err, &found) || found.Kind != errs.Invalid && found.Kind != errs.TooLarge {
			return nil, err
		}
		if report.Failing++; len(report.First) < maxFailing {
			report.First = append(report.First, FailingObject{UUID: stored.UUID, Message: found.Message, Errors: found.Fields})
		}
	}
	return report, nil
}
