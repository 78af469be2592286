package httpkit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// Fixed replies with content that stays the same while the process runs. Everybody may read it, and cache it
// with revalidation.
func Fixed(contentType string, content []byte) Handler {
	sum := sha256.Sum256(content)
	tag := hex.EncodeToString(sum[:16])
	return func(x *Exchange) error {
		match, err := IfNoneMatch(x.Request.Header)
		if err != nil {
			return err
		}
		x.SetHeader("Etag", `"`+tag+`"`)
		x.SetHeader("Cache-Control", "no-cache")
		if match.Given && match.Match(tag) {
			x.WriteHeader(http.StatusNotModified)
			return nil
		}
		x.Send(http.StatusOK, contentType, content)
		return nil
	}
}
