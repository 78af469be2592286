package dynamostore

import (
	"bytes"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// writeBuffer is the size of the buffer of a connection for what it sends. Most requests fit
// in it.
const writeBuffer = 16 << 10

// oneWrite is an HTTP client that sends a request that fits in the buffer of its connection
// by one write. net/http sends the header of a request by itself unless it recognizes that
// the body is in memory, and the SDK wraps its bodies.
type oneWrite struct{ dynamodb.HTTPClient }

func (c oneWrite) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength > 0 && r.ContentLength < writeBuffer {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.HTTPClient.Do(r)
}
