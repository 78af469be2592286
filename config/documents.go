package config

import "slices"

// Documents configures which API documents are served.
type Documents struct{ OpenAPI, AsyncAPI bool }

func readDocuments(s *section) Documents {
	d := Documents{OpenAPI: true, AsyncAPI: true}
	decode(s, "openapi", &d.OpenAPI, parseFlag)
	decode(s, "asyncapi", &d.AsyncAPI, parseFlag)
	s.rejectUnknown()
	return d
}

// Internal reports whether a store is internal: never exposed, and absent from the
// API documents.
func Internal(store string) bool { return slices.Contains(internalStores(), store) }
