package objects

import (
	"context"
	"net/http"

	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

// expansions reads the parameter expand. Of what it leads to, an API key receives what its rule would let it get.
func (r *resource) expansions(x *httpkit.Exchange, text string) ([]store.Expansion, error) {
	all, err := store.ParseExpand(text, r.expand)
	for i, one := range all {
		url := r.urls[one.From]
		all[i].Allow = func(uuid string) error { return r.calls.Allow(x, http.MethodGet, url+"/"+uuid) }
	}
	return all, err
}

// getExpanded is get of an object with those that it names: it reads as much as a list, so it counts as one for limits and
// for memory, and is read at the rate of a page.
func (r *resource) getExpanded(ctx context.Context, x *httpkit.Exchange, q *request) error {
	if err := r.calls.Admit(x, httpkit.List, x.Header()); err != nil {
		return err
	}
	memory, err := r.pages.Reserve(ctx, x.Address, r.expanded.Expected(1, store.MaxPageBytes))
	if err != nil {
		return err
	}
	defer memory.Release()
	q.view.MaxBytes = memory.Page()
	o, err := r.read(ctx, q)
	if err != nil {
		return err
	}
	memory.Resize(len(o.body))
	x.Charge(len(o.body))
	r.expanded.Note(len(o.body), 1)
	awaitReader(x, len(o.body))
	o.send(x)
	return nil
}
