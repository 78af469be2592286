package console

import (
	"slices"

	"belfry/pkg/api/sse"
	"belfry/pkg/event"
	"belfry/pkg/operations/bulk"
)

// Path is the path of the console.
const Path = "/console"

// Options are the options of Mount. A view whose option is missing does not exist.
type Options struct {
	Version string // of the program
	Account string // path of the page on which users add a second factor to their accounts; "" for none

	Objects *Objects
	Model   *Model
	Graph   *Graph
	Live    *Live
	Workers Workers
	Users   *Users
	Mails   Mails
	System  *System
	// Settings need System, whose mailer they try.
	Settings *Settings
	Logs     *Logs
	Backups  *BackupPlace // nil: no place for backups is configured
	API      *API

	Operations []Operation
	Uploads    *bulk.Uploads // files that are imported; nil: none can be
}

// views returns the views in their order in each group of the sidebar.
func (c *Console) views(o Options) (all []view) {
	operations, within := c.operations(o)
	for _, v := range slices.Concat([]view{
		c.objects(o),
		c.model(o.Model),
		c.users(o),
		c.live(o.Live),
		c.api(o.API),
		c.workers(o.Workers),
		c.graph(o.Graph, o.operation("verify")),
	}, operations, []view{
		c.mails(o.Mails),
		c.system(o.System),
		c.settings(o),
		c.logs(o.Logs),
		c.firstSteps(o),
	}) {
		if v.name != "" {
			v.routes = append(v.routes, within[v.name]...)
			all = append(all, v)
		}
	}
	return all
}

// Live is what the view Live needs. The events themselves come from /events, with the session of the admin.
type Live struct {
	Stores []string // whose events can be streamed, sorted
}

func (c *Console) live(o *Live) view {
	if o == nil {
		return view{}
	}
	data := struct {
		Stores []string
		Events []event.Name
		Titles string // JSON: by store, the fields whose first text names an object
	}{slices.Clone(o.Stores), sse.EventNames(), c.names.titles(o.Stores)}
	return view{name: "live", title: "Events", group: dataGroup, routes: []route{
		get("/live", func(r *request) error { return r.Page("live", "Events", data) }),
	}}
}
