package console

import (
	"encoding/json"
	"net/http"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// API is what the view API needs.
type API struct{ document []byte }

// NewAPI returns the API of an OpenAPI document. In the console its only server is the origin of the page: requests go where the
// page comes from, with its session, under whatever name belfry is reached.
func NewAPI(document []byte) (*API, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(document, &parts); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the OpenAPI document")
	}
	delete(parts, "servers") // then the only one is the origin
	document, err := json.Marshal(parts)
	return &API{document}, err
}

// api is the view of the API: its document, from which requests can be made with the session.
func (c *Console) api(a *API) view {
	if a == nil {
		return view{}
	}
	return view{name: "api", title: "API", routes: []route{
		get("/api", func(r *request) error { return r.Page("api", "API", nil) }),
		get("/api/openapi.json", func(r *request) error {
			r.Send(http.StatusOK, kit.JSON, a.document)
			return nil
		}),
	}}
}
