package system

import (
	"sync"

	"belfry/pkg/api/kit"
)

// Document is a JSON document that stays the same while the process runs.
type Document struct {
	Path string // of its route
	Body func() ([]byte, error)
}

// MountDocument adds the route of a document. Its body is asked for at the first request.
func MountDocument(r *kit.Router, d Document) {
	fixed := sync.OnceValues(func() (kit.Handler, error) {
		body, err := d.Body()
		if err != nil {
			return nil, err
		}
		return kit.Fixed(kit.JSON, body), nil
	})
	r.HandleGet(d.Path, func(x *kit.Exchange) error {
		h, err := fixed()
		if err != nil {
			return err
		}
		return h(x)
	})
}
