package console

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Objects is what the view Objects needs.
type Objects struct {
	Set    *store.Set
	Stores []StoreInfo // those that are shown, sorted by name
	Files  []*binary.Service
	// of pictures in pages; nil: pages have the files themselves
	Thumbnails *binary.Thumbnails
	History    History // nil: the log can't be read
}

// StoreInfo describes a store.
type StoreInfo struct {
	Name     string
	URL      string     // of the collection in the API; "" when it is not exposed
	List     bool       // the API lists it
	Get      bool       // the API reads an object of it
	Indexes  [][]string // fields that lists can be filtered and sorted by
	Search   []string   // fields that are searched by words
	Schema   bool       // objects are validated
	Computed []string   // fields that each write computes
	Title    []string   // fields whose first text is the name of an object
	Users    bool       // objects are the users
	Fixed    bool       // authentication alone writes the objects: the idents
	Modeled  bool       // the view Model describes it

	ByAddress bool // the name of a user is an address of theirs, before Title
}

// History returns the newest events of an object before a sequence of the log, 0 for all, the newest first: at most n.
type History func(ctx context.Context, store, uuid string, before uint64, n int) ([]LogEvent, error)

// LogEvent is an event in the log.
type LogEvent struct {
	Sequence uint64
	event.Envelope
}

func (c *Console) objects(options Options) view {
	o := options.Objects
	if o == nil {
		return view{}
	}
	changes := options.operation(BulkPath)
	imports := importView{uploads: options.Uploads, runs: options.operation(ImportPath).runs()}
	v := &objectsView{admins: c.service.Admin, set: o.Set, all: slices.Clone(o.Stores), files: slices.Clone(o.Files),
		history: o.History, thumbnails: o.Thumbnails, names: c.names,
		edited: options.Model.edited()}
	imports.objects = v
	const one = "/objects/:store/object/:uuid"
	routes := []route{
		get("/objects", v.stores),
		get("/objects/:store/new", v.newObject), keeping(post("/objects/:store/new", v.create)),
		keeping(post("/objects/:store/check", v.check)),
		keeping(limitedAs(httpkit.List, post("/objects/:store/pick", v.pick))),
		keeping(limitedAs(httpkit.List, post(one+"/pick", v.pick))),
		get(one, v.object), keeping(post(one, v.update)), keeping(post(one+"/check", v.check)),
		get(one+"/delete", v.askDelete), post(one+"/delete", v.delete), post(one+"/undelete", v.undelete),
		post(one+"/undo", v.undo),
		get(one+"/history", v.objectHistory), get(one+"/history/:sequence", v.restore),
		sendingFile(get(one+"/files/:property/:index", v.download)),
		sendingFile(get(one+"/files/:property/:index/preview", v.preview)),
		limitedAs(httpkit.Upload, post(one+"/files/:property", v.upload)),
		post(one+"/files/:property/:index/delete", v.deleteFile),
	}
	return view{name: "objects", title: "Objects", group: storesGroup, routes: slices.Concat(routes,
		gridView{v, changes != nil, imports.routes() != nil}.routes(), bulkView{v, changes.runs()}.routes(),
		exportView{v}.routes(), imports.routes())}
}

type objectsView struct {
	admins interface {
		Account(ctx context.Context, user store.Stored) (admin.Account, error)
	}
	set        *store.Set
	all        []StoreInfo
	files      []*binary.Service
	thumbnails *binary.Thumbnails
	history    History
	forms      sync.Map // by the name of a store: a storeForm
	names      *namer
	edited     bool // stores can be changed in forms
}

// store returns the store that the path names. Only stores that the console shows exist here: belfry's internal stores
// hold sessions and tokens.
func (v *objectsView) store(r *request) (StoreInfo, *store.Store, error) {
	name, err := r.PathParam("store")
	if err != nil {
		return StoreInfo{}, nil, err
	}
	if info, st := v.shown(name); st != nil {
		return info, st, nil
	}
	return StoreInfo{}, nil, notFound("there is no store %s", httpkit.Truncate(strings.ToValidUTF8(name, ""), 100))
}

// writable is store for handlers that change objects.
func (v *objectsView) writable(r *request) (StoreInfo, *store.Store, error) {
	info, st, err := v.store(r)
	if err == nil && info.Fixed {
		err = errs.New(errs.Denied,
			"authentication alone writes %s, and counts them in their users: see the user of an ident, or "+
				"`belfry user`", info.Name)
	}
	return info, st, err
}

func (v *objectsView) shown(name string) (StoreInfo, *store.Store) {
	return storeNamed(v.all, v.set, name)
}

// storeNamed returns a store of some; nil if they do not have it.
func storeNamed(some []StoreInfo, set *store.Set, name string) (StoreInfo, *store.Store) {
	for _, info := range some {
		if info.Name == name {
			return info, set.Store(name)
		}
	}
	return StoreInfo{}, nil
}

// countTime is how long the page of all stores waits for their counts: some backends would have to read all objects to
// count them.
const countTime = 50 * time.Millisecond

// storeRow is a row of the page of all stores.
type storeRow struct {
	StoreInfo
	Objects int64
	Counted bool
}

// storeList is the data of the page of all stores.
type storeList struct {
	Rows   []storeRow
	Edited bool // stores can be added in forms
}

// Own reports whether there is a store that belfry does not have by itself.
func (l storeList) Own() bool {
	return slices.ContainsFunc(l.Rows, func(s storeRow) bool { return !s.Users && !s.Fixed })
}

func (v *objectsView) stores(r *request) error {
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	return r.Page("objects", "Objects", storeList{v.countAll(ctx), v.edited})
}

// countAll counts the objects of the stores, all at once.
func (v *objectsView) countAll(ctx context.Context) []storeRow {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	rows := make([]storeRow, len(v.all))
	var counts sync.WaitGroup
	for i, info := range v.all {
		rows[i].StoreInfo = info
		counts.Go(func() {
			n, _, err := v.set.Store(info.Name).Count(ctx)
			rows[i].Objects, rows[i].Counted = n, err == nil
		})
	}
	counts.Wait()
	return rows
}

// Bounds of a list.
const (
	listPage     = 50
	maxListBytes = 1 << 20
	maxListKeys  = 20_000 // of indexes that a page intersects, which takes a part of 100 ms
	maxListReads = 1500   // objects that a page reads for those that match
)

// valueAt returns the value of a field, which an index may name: one of the object in a field, too.
func valueAt(body []byte, name string) json.RawMessage {
	value := object.Field(body, name)
	if outer, inner, nested := strings.Cut(name, "."); value == nil && nested {
		if within := object.Field(body, outer); len(within) > 0 && within[0] == '{' {
			return object.Field(within, inner)
		}
	}
	return value
}

// shorten returns the beginning of a text.
func shorten(text string, most int) string {
	if len(text) <= most {
		return legible(text)
	}
	return legible(httpkit.Truncate(text, most)) + "…"
}

// leading returns the fields by which indexes are sorted first.
func leading(info StoreInfo) (names []string) {
	for _, fields := range info.Indexes {
		if name := strings.TrimPrefix(fields[0], "-"); len(names) < maxTried && !strings.HasSuffix(name, "[]") &&
			!slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
