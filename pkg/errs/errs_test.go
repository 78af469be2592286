package errs_test

import (
	"errors"
	"testing"

	"belfry/pkg/errs"
)

func TestAnErrorReadsAsOneLine(t *testing.T) {
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
