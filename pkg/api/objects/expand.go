package objects

import (
	"context"
	"net/http"

	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

// expansions reads the parameter expand. An API key receives only the expanded objects that its rule would allow it to
// get.
func (r *resource) expansions(x *httpkit.Exchange, text string) ([]store.Expansion, error) {
	all, err := store.ParseExpand(text, r.expand)
	for i, one := range all {
		url := r.urls[one.From]
		all[i].Allow = func(uuid string) error { return r.calls.Allow(x, http.MethodGet, url+"/"+uuid) }
	}
	return all, err
}

// getExpanded is get of an object with the objects that it names. It reads as much as a list, so the limits, the memory
// and the minimal rate of lists apply.
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
