package console

import (
	"encoding/json"
	"net/http"
	"sync"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// API is what the view API needs.
type API struct{ document func() ([]byte, error) }

// NewAPI returns the API of an OpenAPI document, which is asked for when the view is first used. In the console its only
// server is the origin of the page: requests go where the page comes from, with its session, under whatever name belfry is reached.
func NewAPI(document func() ([]byte, error)) *API {
	return &API{sync.OnceValues(func() ([]byte, error) {
		whole, err := document()
		if err != nil {
			return nil, err
		}
		return withoutServers(whole)
	})}
}

func withoutServers(document []byte) ([]byte, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(document, &parts); err != nil {
		return nil, errs.Wrap(err, errs.Internal, "the OpenAPI document")
	}
	delete(parts, "servers") // then the only one is the origin
	return json.Marshal(parts)
}

// api is the view of the API: its document, from which requests can be made with the session.
func (c *Console) api(a *API) view {
	if a == nil {
		return view{}
	}
	return view{name: "api", title: "API", routes: []route{
		get("/api", func(r *request) error { return r.Page("api", "API", nil) }),
		get("/api/openapi.json", func(r *request) error {
			document, err := a.document()
			if err != nil {
				return err
			}
			r.Send(http.StatusOK, kit.JSON, document)
			return nil
		}),
	}}
}
