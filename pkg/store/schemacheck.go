package store

import (
	"context"
	"errors"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
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

	// maxReported is how much of a pointer and of a message a report has, in bytes: names of properties can be as long as
	// an object.
	maxReported = 256
)

// CheckSchema reads all objects, and validates them by a schema as their next update would. Nothing is written. Of fields
// that never leave the server the report says only that they do not fit. After each page of objects it calls
// progress, unless that is nil, with the report so far, which must not be modified; an error of it ends the check.
func (s *Store) CheckSchema(ctx context.Context, schema Validator, progress func(SchemaReport) error) (*SchemaReport, error) {
	report := &SchemaReport{}
	for after := []byte(nil); ; {
		page, next, err := s.Scan(ctx, after, checkPageSize)
		if err != nil {
			return nil, err
		}
		for _, stored := range page {
			failing, err := s.mismatch(ctx, schema, stored)
			if err != nil {
				return nil, err
			}
			report.Objects++
			if failing == nil {
				continue
			}
			if report.Failing++; len(report.First) < maxFailing {
				report.First = append(report.First, *failing)
			}
		}
		if progress != nil {
			if err := progress(*report); err != nil {
				return nil, err
			}
		}
		if after = next; after == nil {
			return report, nil
		}
	}
}

// SchemaMismatch returns what the schema of the store finds in an object as it is stored; nil if it matches, or there
// is no schema. Of fields that never leave the server it says only that they do not fit.
func (s *Store) SchemaMismatch(ctx context.Context, stored Stored) (*FailingObject, error) {
	if s.opts.Schema == nil {
		return nil, nil
	}
	return s.mismatch(ctx, s.opts.Schema, stored)
}

// Schema returns the schema of the store, nil for none.
func (s *Store) Schema() Validator { return s.opts.Schema }

// SchemaDigest identifies what the schema of the store requires; "" for no schema, and for one that has none.
func (s *Store) SchemaDigest() string {
	if schema, ok := s.opts.Schema.(interface{ Digest() string }); ok {
		return schema.Digest()
	}
	return ""
}

func (s *Store) mismatch(ctx context.Context, schema Validator, stored Stored) (*FailingObject, error) {
	o, err := object.Decode(stored.Body)
	if err != nil {
		return nil, err
	}
	err = s.judge(ctx, schema, o)
	if err == nil {
		return nil, nil
	}
	var found *errs.Error
	if !errors.As(s.rules.Concealed(err), &found) || found.Kind != errs.Invalid && found.Kind != errs.TooLarge {
		return nil, err
	}
	failing := &FailingObject{UUID: stored.UUID, Message: found.Message}
	for _, f := range found.Fields {
		f.Pointer, f.Message = bounded(f.Pointer), bounded(f.Message)
		failing.Errors = append(failing.Errors, f)
	}
	return failing, nil
}

// bounded returns a pointer or a message, of a long one the beginning.
func bounded(text string) string {
	if len(text) <= maxReported {
		return text
	}
	return strings.ToValidUTF8(text[:maxReported], "") + "..."
}
