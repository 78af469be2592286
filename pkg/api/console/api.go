package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"

	"belfry/internal/baseurl"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// API is what the view API needs.
type API struct {
	document func() (map[string]json.RawMessage, error) // without servers
}

// NewAPI returns the API of an OpenAPI document, which is requested when the view is first used. In the console the
// only server of the document is the origin of the page. So requests go to the host name by which the browser reaches
// belfry, with the session of the page.
func NewAPI(document func() ([]byte, error)) *API {
	return &API{sync.OnceValues(func() (map[string]json.RawMessage, error) {
		whole, err := document()
		if err != nil {
			return nil, err
		}
		return withoutServers(whole)
	})}
}

func withoutServers(document []byte) (map[string]json.RawMessage, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(document, &parts); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the OpenAPI document")
	}
	delete(parts, "servers") // then the only one is the origin
	return parts, nil
}

// at returns the document for pages at a base URL: requests go to their origin.
func (a *API) at(base baseurl.URL) ([]byte, error) {
	parts, err := a.document()
	if err != nil {
		return nil, err
	}
	if path := base.Path(); path != "" {
		parts = maps.Clone(parts)
		if parts["servers"], err = json.Marshal([]map[string]string{{"url": path}}); err != nil {
			return nil, err
		}
	}
	return json.Marshal(parts)
}

// api is the view of the API: its document, from which requests can be made with the session.
func (c *Console) api(a *API) view {
	if a == nil {
		return view{}
	}
	return view{name: "api", title: "API", group: dataGroup, routes: []route{
		get("/api", func(r *request) error { return r.Page("api", "API", nil) }),
		get("/api/openapi.json", func(r *request) error {
			document, err := a.at(r.Base())
			if err != nil {
				return err
			}
			r.Send(http.StatusOK, httpkit.JSON, document)
			return nil
		}),
	}}
}
