package errs_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"belfry/pkg/errs"
)

func TestErrorTextIsOneLine(t *testing.T) {
	cause := errors.New("the cause")
	fields := []errs.Field{{Pointer: "/title", Message: "is missing"}, {Pointer: "", Message: "is too much"}}
	for want, err := range map[string]error{
		"so":                                  errs.New(errs.Invalid, "so"),
		"so: the cause":                       errs.Wrap(cause, errs.Internal, "so"),
		"the cause":                           errs.Wrap(cause, errs.Internal, ""),
		"so; /title: is missing; is too much": &errs.Error{Message: "so", Fields: fields},
		"so; /title: is missing; is too much: the cause": &errs.Error{Message: "so", Fields: fields, Err: cause},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

func TestOutermostKindDecides(t *testing.T) {
	cause := &os.PathError{Op: "open", Path: "x", Err: os.ErrNotExist}
	inner := errs.Wrap(cause, errs.NotFound, "no object")
	err := errs.Wrap(fmt.Errorf("read: %w", inner), errs.Unavailable, "the backend is unavailable")
	if !errors.Is(err, errs.Unavailable) || errors.Is(err, errs.NotFound) || errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%v is %v", err, errs.KindOf(err))
	}
	if plain := fmt.Errorf("read: %w", inner); !errors.Is(plain, errs.NotFound) {
		t.Errorf("%v lost its kind", plain)
	}
	var path *os.PathError
	if !errors.Is(err, os.ErrNotExist) || !errors.As(err, &path) || path != cause {
		t.Error("the cause is out of reach")
	}
	if bare := fmt.Errorf("get: %w", errs.NotFound); errs.KindOf(bare) != errs.NotFound ||
		!errors.Is(bare, errs.NotFound) {
		t.Errorf("%v is %v", bare, errs.KindOf(bare))
	}
	if errors.Unwrap(errs.New(errs.Invalid, "so")) != nil {
		t.Error("an error without a cause has one")
	}
}
