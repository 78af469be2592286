package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

const systemTag = "System"

// system adds the routes about belfry itself.
func (d *document) system() {
	d.tag(systemTag, "How belfry is, and what it offers.")
	status := reply("All is well.", asJSON(model.Ref("Status")), "Cache-Control")
	d.get(operation{
		path: "/livez", tag: systemTag, id: "getLiveness", summary: "Whether the process is alive, or needs a restart", security: open(),
		replies: ordered.Of("200", status), problems: []int{500, 503},
	})
	d.get(operation{
		path: "/healthz", tag: systemTag, id: "getHealth", summary: "The same as /livez", security: open(),
		replies: ordered.Of("200", status), problems: []int{500, 503},
	})
	d.get(operation{
		path: "/readyz", tag: systemTag, id: "getReadiness", summary: "Whether requests can be served", security: open(),
		replies: ordered.Of("200", status), problems: []int{500, 503},
	})
	document := func(path, id, summary string) {
		d.get(operation{
			path: path, tag: systemTag, id: id, summary: summary, security: open(),
			parameters: parameters("IfNoneMatch"),
			replies: ordered.Of(
				"200", reply("The document.", asJSON(free("The document.")), "Etag", "Cache-Control"),
				"304", reply("It is what the client has.", nil, "Etag", "Cache-Control"),
			),
			problems: []int{400, 500, 503},
		})
	}
	if d.contract.Routes.OpenAPI {
		document("/openapi.json", "getOpenAPI", "This document")
	}
	if d.contract.Routes.AsyncAPI {
		document("/asyncapi.json", "getAsyncAPI", "What there is on the bus, as an AsyncAPI document")
	}
}
