package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"belfry/pkg/errs"
)

// Encode writes a problem document as people can read it: a "<" is no danger
// where nothing takes it for HTML.
func Encode(document any) []byte {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		// Strings and numbers always have JSON text.
		panic(err)
	}
	return body.Bytes()
}

// RetryAfter is the whole seconds after which to try again, at least one.
func RetryAfter(err error) string {
	var e *errs.Error
	if errors.As(err, &e) && e.RetryAfter > time.Second {
		return strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10)
	}
	return "1"
}
