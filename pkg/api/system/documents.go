package system

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"belfry/pkg/api/kit"
)

// Document is a JSON document that stays the same while the process runs.
type Document struct {
	Path string // of its route
	Body []byte
}

// MountDocument adds the route of a document. Everybody may read it, and cache it
// with revalidation.
func MountDocument(r *kit.Router, d Document) {
	sum := sha256.Sum256(d.Body)
	tag := hex.EncodeToString(sum[:16])
	r.HandleGet(d.Path, func(x *kit.Exchange) error {
		match, err := x.IfNoneMatch()
		if err != nil {
			return err
		}
		x.SetHeader("Etag", `"`+tag+`"`)
		x.SetHeader("Cache-Control", "no-cache")
		if match.Given && match.MatchWeak(tag) {
			x.WriteHeader(http.StatusNotModified)
			return nil
		}
		x.Send(http.StatusOK, kit.JSON, d.Body)
		return nil
	})
}
