package schema

import (
	"encoding/base64"
	"encoding/json"
)

// What the keywords about content can assert.
const (
	contentBase64     = "base64"
	contentJSON       = "json"
	contentBase64JSON = "base64 json"
)

// content evaluates contentEncoding and contentMediaType.
func (r *run) content(asserted, s string) {
	if r.spend(len(s) / 16); r.over() {
		return
	}
	data := []byte(s)
	if asserted != contentJSON {
		decoded, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			r.fail("contentEncoding", "must be encoded as base64")
			return
		}
		data = decoded
	}
	if asserted != contentBase64 && !json.Valid(data) {
		r.fail("contentMediaType", "must contain JSON")
	}
}
