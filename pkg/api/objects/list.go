package objects

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

// list is GET on the collection: a page of objects.
func (r *resource) list(x *httpkit.Exchange) error {
	opts, query, err := listOptions(x.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	if opts.Expand, err = r.expansions(x, query.Get("expand")); err != nil {
		return err
	}
	ctx, err := r.calls.Client(x)
	if err != nil {
		return err
	}
	if opts.Explain {
		if err := r.calls.RequireAdmin(x, "explain=true"); err != nil {
			return err
		}
	}
	memory, err := r.pages.Reserve(ctx, x.Address,
		r.sizes.Expected(cmp.Or(opts.Limit, store.DefaultPage), store.MaxPageBytes))
	if err != nil {
		return err
	}
	defer memory.Release()
	opts.MaxBytes = memory.Page()
	page, err := r.store.List(ctx, opts)
	if err != nil {
		return err
	}
	buffer := pageBuffers.Get().(*[]byte)
	body := page.AppendEncoded((*buffer)[:0], "items")
	defer keepBuffer(buffer, body)
	memory.Resize(len(body))
	x.Charge(len(body))
	r.sizes.Note(len(body), len(page.Objects))
	for _, to := range [...]struct{ cursor, parameter, other, relation string }{
		{page.Next, "cursor", "before", "next"}, {page.Back, "before", "cursor", "prev"},
	} {
		if to.cursor != "" {
			query.Del(to.other)
			query.Set(to.parameter, to.cursor)
			x.Header().Add("Link", "<"+x.Base().Below(r.url)+"?"+query.Encode()+`>; rel="`+to.relation+`"`)
		}
	}
	x.SetHeader("Cache-Control", httpkit.Revalidate)
	sendPage(x, body)
	return nil
}

// parameters parses a query. An unknown, repeated or malformed parameter is Invalid: ignoring a filter would return too
// much.
func parameters(raw string, known ...string) (url.Values, error) {
	query, err := httpkit.ParseQuery(raw)
	if err != nil {
		return nil, err
	}
	for name, values := range query {
		switch {
		case !slices.Contains(known, name):
			return nil, errs.New(errs.Invalid, "the query parameter %q is unknown; known are %s",
				httpkit.Truncate(name, 64), strings.Join(known, ", "))
		case len(values) > 1:
			return nil, errs.New(errs.Invalid, "the query parameter %s occurs more than once", name)
		}
	}
	return query, nil
}

// listOptions parses the query of a list.
func listOptions(raw string) (opts store.ListOptions, query url.Values, err error) {
	if query, err = parameters(raw, "q", "filter", "sort", "limit", "cursor", "before", "fields", "expand", "count",
		"explain"); err != nil {
		return opts, nil, err
	}
	for name := range query {
		switch value := query.Get(name); name {
		case "q":
			opts.Words = value
		case "filter":
			opts.Filter = value
		case "sort":
			opts.Sort = value
		case "cursor":
			opts.Cursor = value
		case "before":
			opts.Before = value
		case "fields":
			opts.Fields = value
		case "count":
			if opts.Count, err = store.ParseCount(value); err != nil {
				return opts, nil, err
			}
		case "explain":
			if opts.Explain = value == "true"; !opts.Explain && value != "false" {
				return opts, nil, errs.New(errs.Invalid, "explain must be true or false")
			}
		case "limit":
			if opts.Limit, err = strconv.Atoi(value); err != nil || opts.Limit < 1 {
				return opts, nil, errs.New(errs.Invalid, "limit must be a whole number from 1 to %d", store.MaxPage)
			}
		}
	}
	return opts, query, nil
}

// A client has to read a page at minReadRate bytes a second, or within minReadTime, because the page is in memory until
// then.
const (
	minReadTime = 10 * time.Second
	minReadRate = 64 << 10
)

// pageBuffers are those of pages that were sent: most lists need no new one.
var pageBuffers = sync.Pool{New: func() any { return new([]byte) }}

const maxKeptBuffer = 64 << 10

func keepBuffer(buffer *[]byte, body []byte) {
	if cap(body) <= maxKeptBuffer {
		*buffer = body
		pageBuffers.Put(buffer)
	}
}

// sendPage sends a page to a client that has to read it at a minimal rate.
func sendPage(x *httpkit.Exchange, body []byte) {
	awaitReader(x, len(body))
	x.Send(http.StatusOK, httpkit.JSON, body)
}

// awaitReader sets the time for the client to read so many bytes.
func awaitReader(x *httpkit.Exchange, bytes int) {
	limit := minReadTime + time.Duration(bytes/minReadRate)*time.Second
	// If the connection does not support deadlines, the server's deadline applies.
	_ = http.NewResponseController(x).SetWriteDeadline(time.Now().Add(limit))
}
