package objects

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// list is GET on the collection: a page of objects.
func (r *resource) list(x *kit.Exchange) error {
	opts, query, err := listOptions(x.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	ctx, err := r.calls.Client(x)
	if err != nil {
		return err
	}
	memory, err := r.pages.Reserve(ctx, x.Address, r.sizes.Expected(cmp.Or(opts.Limit, store.DefaultPage), store.MaxPageBytes))
	if err != nil {
		return err
	}
	defer memory.Release()
	opts.MaxBytes = memory.Page()
	page, err := r.store.List(ctx, opts)
	if err != nil {
		return err
	}
	body := page.Encode("items")
	memory.Resize(len(body))
	x.Charge(len(body))
	r.sizes.Note(len(body), len(page.Objects))
	if page.Next != "" {
		query.Set("cursor", page.Next)
		x.SetHeader("Link", "<"+r.url+"?"+query.Encode()+`>; rel="next"`)
	}
	x.SetHeader("Cache-Control", kit.Revalidate)
	sendPage(x, body)
	return nil
}

// listOptions parses the query of a list. A parameter that is unknown, repeated or
// malformed is Invalid: a filter that is ignored would return too much.
func listOptions(raw string) (store.ListOptions, url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return store.ListOptions{}, nil, errs.New(errs.Invalid, "the query is not properly percent-encoded")
	}
	var opts store.ListOptions
	for name, values := range query {
		if len(values) > 1 {
			return opts, nil, errs.New(errs.Invalid, "the query parameter %s occurs more than once", name)
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
				"the query parameter %q is unknown; filter, sort, limit and cursor are known", kit.Truncate(name, 64))
		}
	}
	return opts, query, nil
}

// Within minReadTime and at minReadRate bytes a second a client has to read a page.
const (
	minReadTime = 10 * time.Second
	minReadRate = 64 << 10
)

// sendPage sends a page to a client that has to read it at a minimal rate.
func sendPage(x *kit.Exchange, body []byte) {
	limit := minReadTime + time.Duration(len(body)/minReadRate)*time.Second
	// Where the connection has no deadlines, that of the server holds.
	_ = http.NewResponseController(x).SetWriteDeadline(time.Now().Add(limit))
	x.Send(http.StatusOK, kit.JSON, body)
}
