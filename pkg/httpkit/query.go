package httpkit

import (
	"net/url"
	"strings"

	"belfry/pkg/errs"
)

// maxParameters bounds the parameters of a query, and the fields of a form: each takes many times its bytes.
const maxParameters = 1000

// hasTooMany reports whether a query, or a form, has more parameters than that. It reads no parameter.
func hasTooMany(text string) bool { return strings.Count(text, "&") >= maxParameters }

// ParseQuery parses a query. It is Invalid if it is malformed, or has more parameters than any route has use for.
func ParseQuery(raw string) (url.Values, error) {
	if hasTooMany(raw) {
		return nil, errs.New(errs.Invalid, "the query has more than %d parameters", maxParameters)
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the query is not properly percent-encoded")
	}
	return query, nil
}

// Query returns the query of the request, for routes that ignore malformed parameters. If there are too many, it
// ignores all.
func (x *Exchange) Query() url.Values {
	if hasTooMany(x.Request.URL.RawQuery) {
		return nil
	}
	return x.Request.URL.Query()
}
