// Package schematest compiles schemas with another implementation of JSON Schema, by which tests
// judge this project's implementation of them.
package schematest

import (
	"bytes"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"belfry/internal/ordered"
)

// Compile compiles a whole schema, of draft 2020-12 unless it declares another.
func Compile(whole *ordered.Object) (*jsonschema.Schema, error) {
	text, err := whole.MarshalJSON()
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("belfry:///whole", doc); err != nil {
		return nil, err
	}
	return c.Compile("belfry:///whole")
}
