package api

import (
	"net/http"
	"net/url"
	"strconv"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// list is GET on the collection: a page of objects.
func (r *resource) list(x *exchange) error {
	opts, query, err := listOptions(x.req.URL.RawQuery)
	if err != nil {
		return err
	}
	call, err := r.server.call(x)
	if err != nil {
		return err
	}
	page, err := r.store.List(store.WithCall(x.req.Context(), call), opts)
	if err != nil {
		return err
	}
	if page.Next != "" {
		query.Set("cursor", page.Next)
		x.set("Link", "<"+r.url+"?"+query.Encode()+`>; rel="next"`)
	}
	x.set("Cache-Control", revalidate)
	x.send(http.StatusOK, jsonType, page.Encode("items"))
	return nil
}

// listOptions reads the query of a list. A parameter that is unknown, given
// twice or malformed is refused: a filter that is overlooked shows too much.
func listOptions(raw string) (store.ListOptions, url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return store.ListOptions{}, nil, errs.New(errs.Invalid, "the query is not properly percent-encoded")
	}
	var opts store.ListOptions
	for name, values := range query {
		if len(values) > 1 {
			return opts, nil, errs.New(errs.Invalid, "the query parameter %s is given more than once", name)
		}
		switch value := values[0]; name {
		case "filter":
			opts.Filter = value
		case "sort":
			opts.Sort = value
		case "cursor":
			opts.Cursor = value
		case "limit":
			if opts.Limit, err = strconv.Atoi(value); err != nil || opts.Limit < 1 {
				return opts, nil, errs.New(errs.Invalid, "limit must be a whole number from 1 to %d", store.MaxPage)
			}
		default:
			return opts, nil, errs.New(errs.Invalid,
				"the query parameter %q is unknown; filter, sort, limit and cursor are known", cut(name, 64))
		}
	}
	return opts, query, nil
}
