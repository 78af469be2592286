package config

import "slices"

// Documents says which documents that describe this belfry are routes.
type Documents struct{ OpenAPI, AsyncAPI bool }

func readDocuments(s *section) Documents {
	d := Documents{OpenAPI: true, AsyncAPI: true}
	decode(s, "openapi", &d.OpenAPI, parseFlag)
	decode(s, "asyncapi", &d.AsyncAPI, parseFlag)
	s.rejectUnknown()
	return d
}

// Internal reports whether a store is belfry's alone: never exposed, and
// described to nobody.
func Internal(store string) bool { return slices.Contains(internalStores(), store) }
