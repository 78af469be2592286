package system

import (
	"sync"

	"belfry/internal/ordered"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Documents are the JSON documents about the API. They stay the same while the process runs, and are created at the
// first request.
type Documents struct {
	OpenAPI, AsyncAPI func() ([]byte, error)
}

// document adds the route of a document.
func document(set *op.Set, path, id, summary string, body func() ([]byte, error)) {
	set.Get(op.Operation{
		Path: path, ID: id, Summary: summary, Security: op.Open(),
		Parameters: op.Parameters("IfNoneMatch"),
		Replies: ordered.Of(
			"200", op.Reply("The document.", op.JSON(op.Free("The document.")), "Etag", "Cache-Control"),
			"304", op.Reply("The client's copy is current.", nil, "Etag", "Cache-Control"),
		),
		Problems: []int{400},
		Run:      send(body),
	})
}

// send replies with a document.
func send(body func() ([]byte, error)) httpkit.Handler {
	fixed := sync.OnceValues(func() (httpkit.Handler, error) {
		content, err := body()
		if err != nil {
			return nil, err
		}
		return httpkit.Fixed(httpkit.JSON, content), nil
	})
	return func(x *httpkit.Exchange) error {
		h, err := fixed()
		if err != nil {
			return err
		}
		return h(x)
	}
}
