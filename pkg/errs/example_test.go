package errs_test

import (
	"errors"
	"fmt"
	"os"

	"belfry/pkg/errs"
)

func Example() {
	_, cause := os.Open("/no/such/file")
	err := errs.Wrap(cause, errs.Invalid, "the picture can't be opened")

	fmt.Println(errors.Is(err, errs.Invalid), errors.Is(err, os.ErrNotExist))
	fmt.Println(errs.KindOf(err))
	// Output:
	// true true
	// invalid
}

func ExampleNew() {
	err := errs.New(errs.NotFound, "there is no book %q", "emma")
	fmt.Println(err, errors.Is(err, errs.NotFound))
	// Output: there is no book "emma" true
}

func ExampleWrap() {
	err := errs.Wrap(errors.New("dial tcp 10.0.0.7:27017: i/o timeout"), errs.Unavailable, "the backend is unavailable")
	fmt.Println(err) // for the log
	var e *errs.Error
	if errors.As(err, &e) {
		fmt.Println(e.Message) // for a client
	}
	fmt.Println(errs.Wrap(nil, errs.Unavailable, "nothing happened"))
	// Output:
	// the backend is unavailable: dial tcp 10.0.0.7:27017: i/o timeout
	// the backend is unavailable
	// <nil>
}

func ExampleKindOf() {
	switch errs.KindOf(fmt.Errorf("save: %w", errs.New(errs.Limited, "too many requests"))) {
	case errs.Limited, errs.Unavailable:
		fmt.Println("retry later")
	case errs.Invalid:
		fmt.Println("fix the request")
	}
	// Output: retry later
}
