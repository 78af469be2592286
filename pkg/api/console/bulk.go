package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/problem"
	"belfry/pkg/store"
)

// BulkPath is the path of the operation that lists of objects start.
const BulkPath = "objects/bulk"

const (
	maxSelected = 500 // objects that a form names
	maxSamples  = 5   // objects that the page before a change shows
	maxNewValue = 64 << 10
)

// RefuseOwn returns Conflict if the deletion of an object, with all its fields, would delete the admin.
func (o *Objects) RefuseOwn(ctx context.Context, admin, name string, target store.Stored) error {
	v := &objectsView{set: o.Set, all: o.Stores}
	info, _ := v.shown(name)
	info.Name = name
	return v.refuseOwn(ctx, admin, info, target)
}

// bulkView changes many objects of a store at once.
type bulkView struct {
	objects *objectsView
	runs    Runs
}

func (v bulkView) routes() []route {
	if v.runs == nil {
		return nil
	}
	return []route{
		limitedAs(httpkit.List, post("/objects/:store/bulk", v.ask)),
		post("/objects/:store/bulk/run", v.start),
		get("/objects/:store/bulk", v.show),
		post("/objects/:store/bulk/stop", v.stop),
	}
}

// bulkPage is what the page before a change shows.
type bulkPage struct {
	Store   StoreInfo
	Request bulk.Request
	Count   string // how many objects, in words
	Samples []sample
	More    bool // there are more than the samples
	Most    int  // objects of a run
	Filled  bool // a Set shows its value
	Value   string
	Problem string // why it can't be done as it is; then the form can be corrected
	Fields  []errs.Field
}

// sample is an object that is about to be changed.
type sample struct {
	named
	Now string
}

// read returns the request of a form, checked.
func (v bulkView) read(r *request) (info StoreInfo, st *store.Store, q bulk.Request, ctx context.Context, err error) {
	if info, st, err = v.objects.writable(r); err != nil {
		return info, st, q, ctx, err
	}
	form, ctx, err := r.Submitted()
	if err != nil {
		return info, st, q, ctx, err
	}
	uuids := form["uuid"]
	q = bulk.Request{Store: info.Name, Action: form.Get("action"), All: form.Get("all") != "",
		Actor: r.Session.User.UUID}
	if q.Action != bulk.Delete {
		q.Field = form.Get("field")
	}
	if q.Action == bulk.Set {
		q.Value = form.Get("value")
	}
	if q.All {
		q.Filter, q.Words = strings.TrimSpace(form.Get("filter")), strings.TrimSpace(form.Get("q"))
	} else {
		q.Objects = strings.Join(uuids[:min(len(uuids), maxSelected)], "\n")
	}
	if len(uuids) > maxSelected {
		return info, st, q, ctx, errs.New(errs.Invalid, "at most %d objects can be chosen one by one", maxSelected)
	}
	if len(q.Value) > maxNewValue {
		return info, st, q, ctx, errs.New(errs.TooLarge, "the value has more than %d bytes", maxNewValue)
	}
	return info, st, q, ctx, q.Check(st)
}

// ask shows what a change would do, and asks for confirmation.
func (v bulkView) ask(r *request) error {
	info, st, q, ctx, err := v.read(r)
	if err != nil {
		return v.refuse(r, info, q, err)
	}
	p := bulkPage{Store: info, Request: q, Most: bulk.MaxObjects, Value: readable([]byte(q.Value), maxCell*10)}
	if q.All {
		err = p.matching(ctx, st, v.objects.names)
	} else {
		err = p.chosen(ctx, st, v.objects.names)
	}
	if err != nil {
		return v.refuse(r, info, q, err)
	}
	return r.Page("objects_bulk", "Change "+info.Name, p)
}

// refuse shows the form again with what is wrong with it. Other errors are returned.
func (v bulkView) refuse(r *request, info StoreInfo, q bulk.Request, err error) error {
	if q.Store == "" || !isCorrectable(err) {
		return err
	}
	r.RecordError(err)
	p := bulkPage{Store: info, Request: q}
	if form, failed := r.Form(); failed == nil { // the list was filtered also where objects were chosen one by one
		p.Request.Filter, p.Request.Words = form.Get("filter"), form.Get("q")
	}
	p.Problem, p.Fields = messageOf(err)
	return r.page(problem.Of(errs.KindOf(err)).Status, "objects_bulk", "Change "+info.Name, p)
}

// matching adds the objects that match.
func (p *bulkPage) matching(ctx context.Context, st *store.Store, names *namer) error {
	page, err := st.List(ctx, store.ListOptions{Filter: p.Request.Filter, Words: p.Request.Words, Limit: maxSamples,
		MaxBytes: maxListBytes, MaxKeys: maxListKeys, MaxReads: maxListReads, Count: store.CountExact})
	if err != nil {
		return err
	}
	p.Count, p.More = countText(page.Count), page.Next != ""
	for _, o := range page.Objects {
		p.sample(names, o)
	}
	return nil
}

// chosen adds the objects that were chosen one by one.
func (p *bulkPage) chosen(ctx context.Context, st *store.Store, names *namer) error {
	uuids := p.Request.UUIDs()
	n := int64(len(uuids))
	p.Count, p.More = countText(&store.Count{Value: n, Accuracy: store.Exact}), n > maxSamples
	p.Count = strings.NewReplacer(" matches.", " is chosen.", " match.", " are chosen.").Replace(p.Count)
	for _, uuid := range uuids[:min(len(uuids), maxSamples)] {
		o, err := st.Get(ctx, uuid)
		if errs.KindOf(err) == errs.NotFound && err != nil {
			continue
		}
		if err != nil {
			return err
		}
		p.sample(names, o)
	}
	return nil
}

func (p *bulkPage) sample(names *namer, o store.Stored) {
	p.Samples = append(p.Samples, sample{names.named(p.Store.Name, o),
		shorten(string(object.Field(o.Body, p.Request.Field)), maxCell)})
}

// Objects are the uuids of those that were chosen.
func (p bulkPage) Objects() []string { return p.Request.UUIDs() }

// start starts a run.
func (v bulkView) start(r *request) error {
	info, _, q, _, err := v.read(r)
	if err != nil {
		return v.refuse(r, info, q, err)
	}
	form, err := formOf(q)
	if err != nil {
		return err
	}
	if err := v.runs.Start(r.Context(), r.name(), r.ID, form); err != nil {
		return v.refuse(r, info, q, err)
	}
	r.Log(slog.LevelInfo, "a bulk change was started in the console", slog.String("store", info.Name),
		slog.String("action", q.Action), slog.String("actor", q.Actor))
	return r.Redirect(pathOf("objects", info.Name, "bulk"), "")
}

// formOf returns a request of a run as its form would send it.
func formOf(request any) (url.Values, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	form := url.Values{}
	for name, value := range fields {
		switch value := value.(type) {
		case string:
			form.Set(name, value)
		case bool:
			if value {
				form.Set(name, "true")
			}
		}
	}
	return form, nil
}

// bulkRun is what the page of a run shows.
type bulkRun struct {
	Store StoreInfo
	Back  string // of the routes of the page
	Run   *Run   // nil: none
	Of    bulk.Request
	bulk.Report
	Elsewhere string // the store of the run, if it is another one

	Import bulk.ImportRequest
	Waits  bool // its file can be imported
	Listed bool // all that it has refused can be downloaded

	Refusals []refusal
}

// refusal is an object that a run has refused.
type refusal struct {
	named
	Line   int64
	Column string
	Reason string
}

// objects implements showsObjects.
func (p *bulkRun) objects() (all []*named) {
	for i := range p.Refusals {
		all = append(all, &p.Refusals[i].named)
	}
	return all
}

// reportOf returns the last report of a run, of the changes or of the imports.
func reportOf(run *Run) (report bulk.Report) {
	if p, ok := run.Progress.(bulk.Report); ok {
		report = p
	}
	if out, ok := run.Out.(*bulk.Report); ok && out != nil {
		report = *out
	}
	return report
}

// show shows the run that is in progress, or the last one.
func (v bulkView) show(r *request) error {
	info, st, err := v.objects.writable(r)
	if err != nil {
		return err
	}
	last, err := v.runs.Last(r.Context())
	if err != nil {
		return err
	}
	p := &bulkRun{Store: info, Back: "bulk", Run: last}
	if last != nil {
		p.Of, _ = last.In.(bulk.Request)
		if p.Report = reportOf(last); p.Of.Store != info.Name {
			p.Elsewhere, p.Report = p.Of.Store, bulk.Report{}
		}
		if st.Rules().Hidden(p.Of.Field) && p.Of.Field != "" { // it may have become private since
			p.Of.Field, p.Of.Value = "", ""
		}
	}
	return r.showRun("Changes of "+info.Name, p)
}

// showRun replies with the page of a run, or for htmx with its state.
func (r *request) showRun(title string, p *bulkRun) error {
	for _, of := range p.Report.Refusals {
		p.Refusals = append(p.Refusals, refusal{r.console.names.of(p.Store.Name, of.UUID), of.Line,
			of.Column, of.Reason})
	}
	if r.Partial() {
		return r.Fragment("objects_run", "bulk_state", p)
	}
	return r.Page("objects_run", title, p)
}

func (v bulkView) stop(r *request) error { return v.objects.stopRun(r, v.runs, "bulk") }

// stopRun stops the run that is in progress, and leads to its page.
func (v *objectsView) stopRun(r *request, runs Runs, page string) error {
	info, _, err := v.writable(r)
	if err != nil {
		return err
	}
	if err := runs.Stop(r.Context()); err != nil {
		return err
	}
	return r.Redirect(pathOf("objects", info.Name, page), "The run is being stopped.")
}
