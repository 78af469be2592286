package console

import (
	"slices"

	"belfry/pkg/api/sse"
	"belfry/pkg/event"
)

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
	}{slices.Clone(o.Stores), sse.EventNames()}
	return view{name: "live", title: "Live", routes: []route{
		get("/live", func(r *request) error { return r.Page("live", "Live", data) }),
	}}
}
