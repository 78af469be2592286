package oauth

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"belfry/pkg/object"
)

// fieldExpiresIn is the field of a token reply that says for how many seconds the access token is valid.
const fieldExpiresIn = "expires_in"

// tokenClient is the client of a token endpoint. It repairs replies that the library could not read because of a field
// that belfry does not need.
func (t *transport) tokenClient() *http.Client { return &http.Client{Transport: tokenTransport{t}} }

type tokenTransport struct{ *transport }

func (t tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body) // of a buffer
	if err != nil {
		return nil, err
	}
	body = repairTokenReply(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// repairTokenReply returns a reply of a token endpoint with expires_in as an integer, or without it. RFC 6749 has a
// number of seconds; some providers send 3599.0, "3599", "" or -1. A reply that is not a JSON object stays.
func repairTokenReply(body []byte) []byte {
	o, _, err := repair(body, "access_token", "id_token", "refresh_token", "token_type")
	if err != nil {
		return body
	}
	if value, sent := o[fieldExpiresIn]; sent {
		delete(o, fieldExpiresIn)
		if seconds := lifetime(value); seconds > 0 {
			o.Set(fieldExpiresIn, seconds)
		}
	}
	return o.Encode()
}

// lifetime returns the whole seconds of expires_in; 0 if it has no valid value.
func lifetime(value json.RawMessage) int64 {
	const most = 1 << 30 // 34 years
	text, isText := object.Text(value)
	if !isText {
		text = string(value)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(seconds >= 1) { // or not a number
		return 0
	}
	return int64(min(seconds, most))
}
