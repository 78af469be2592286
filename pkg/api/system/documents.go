package system

import "belfry/pkg/api/kit"

// Document is a JSON document that stays the same while the process runs.
type Document struct {
	Path string // of its route
	Body []byte
}

// MountDocument adds the route of a document.
func MountDocument(r *kit.Router, d Document) { r.HandleGet(d.Path, kit.Fixed(kit.JSON, d.Body)) }
