package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"belfry/pkg/errs"
)

// Encode encodes a problem document. It does not escape HTML characters, for people to
// read: the media type keeps clients from rendering it as HTML.
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

// RetryAfter returns the value of the Retry-After header for an error, in whole seconds,
// at least one.
func RetryAfter(err error) string {
	var e *errs.Error
	if errors.As(err, &e) {
		return Seconds(e.RetryAfter)
	}
	return "1"
}

// Seconds returns a duration in whole seconds, rounded up, at least one.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
