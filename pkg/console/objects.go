package console

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Objects is what the view Objects needs.
type Objects struct {
	Stores []StoreInfo // those that are shown, sorted by name
}

// StoreInfo describes a store.
type StoreInfo struct {
	Name  string
	URL   string // of the collection in the API; "" when it is not exposed
	List  bool   // the API lists it
	Count func(ctx context.Context) (int64, error)
}

func (c *Console) objects(o *Objects) view {
	if o == nil {
		return view{}
	}
	v := &objectsView{slices.Clone(o.Stores)}
	return view{name: "objects", title: "Objects", routes: []route{
		get("/objects", v.stores),
	}}
}

type objectsView struct{ all []StoreInfo }

// countTime is how long the page of all stores waits for their counts: a backend that would have to read
// its objects for it has none.
const countTime = 50 * time.Millisecond

// storeRow is a row of the page of all stores.
type storeRow struct {
	StoreInfo
	Objects int64
	Counted bool
}

func (v *objectsView) stores(r *request) error {
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	return r.Page("objects", "Objects", countAll(ctx, v.all))
}

// countAll counts the objects of stores, all at once.
func countAll(ctx context.Context, all []StoreInfo) []storeRow {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	rows := make([]storeRow, len(all))
	var counts sync.WaitGroup
	for i, s := range all {
		rows[i].StoreInfo = s
		counts.Go(func() {
			n, err := s.Count(ctx)
			rows[i].Objects, rows[i].Counted = n, err == nil
		})
	}
	counts.Wait()
	return rows
}
