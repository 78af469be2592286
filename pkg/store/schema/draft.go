package schema

import (
	"embed"
	"io/fs"
	"strings"
)

// draft is a version of JSON Schema. The zero value is no draft.
type draft uint8

const (
	draft07 draft = iota + 1
	draft2019
)

const (
	uri2019 = "https://json-schema.org/draft/2019-09/schema"
	uri07   = "http://json-schema.org/draft-07/schema"
)

func (d draft) String() string {
	if d == draft07 {
		return "draft-07"
	}
	return "draft 2019-09"
}

// draftOf reads a $schema.
func draftOf(uri string) (draft, bool) {
	switch strings.TrimSuffix(uri, "#") {
	case uri2019:
		return draft2019, true
	case uri07:
		return draft07, true
	default:
		return 0, false
	}
}

// position says where a keyword's value holds schemas.
type position uint8

const (
	notSchema   position = iota
	oneSchema            // the value is a schema
	schemaList           // an array of schemas
	schemaMap            // an object whose members are schemas
	schemaItems          // a schema or an array of them
	schemaOrSet          // an object whose members are schemas or arrays of names
)

// position of the schemas in a keyword of the draft. definitions and $defs are
// looked into in both: a schema may refer to what it keeps there.
func (d draft) position(keyword string) position {
	switch keyword {
	case "not", "if", "then", "else", "contains", "additionalItems", "additionalProperties", "propertyNames":
		return oneSchema
	case "allOf", "anyOf", "oneOf":
		return schemaList
	case "properties", "patternProperties", "definitions", "$defs":
		return schemaMap
	case "items":
		return schemaItems
	}
	switch {
	case d == draft07 && keyword == "dependencies":
		return schemaOrSet
	case d == draft2019 && keyword == "dependentSchemas":
		return schemaMap
	case d == draft2019 && (keyword == "unevaluatedItems" || keyword == "unevaluatedProperties" || keyword == "contentSchema"):
		return oneSchema
	}
	return notSchema
}

// foreign names, for a keyword that belongs to another draft and would be ignored
// in silence, what to write instead; "" for any other.
func (d draft) foreign(keyword string) string {
	switch keyword {
	case "prefixItems":
		return "write it as an array in items (prefixItems is of draft 2020-12)"
	case "$dynamicRef", "$dynamicAnchor":
		return "use $recursiveRef and $recursiveAnchor of draft 2019-09 (this is of draft 2020-12)"
	}
	if d == draft2019 {
		if keyword == "dependencies" {
			return "use dependentRequired or dependentSchemas, or declare draft-07 in $schema"
		}
		return ""
	}
	switch keyword {
	case "dependentRequired", "dependentSchemas":
		return "use dependencies, or declare " + uri2019 + " in $schema"
	case "unevaluatedItems", "unevaluatedProperties", "minContains", "maxContains",
		"$anchor", "$recursiveRef", "$recursiveAnchor":
		return "declare " + uri2019 + " in $schema"
	}
	return ""
}

//go:embed metaschema
var metaschemas embed.FS

// metaschema is the embedded text of a draft's own schema or of one of its
// vocabularies, or nil.
func metaschema(uri string) []byte {
	var path string
	switch rest, vocabulary := strings.CutPrefix(uri, "https://json-schema.org/draft/2019-09/meta/"); {
	case uri == uri2019:
		path = "metaschema/draft2019-09.json"
	case uri == uri07:
		path = "metaschema/draft-07.json"
	case vocabulary && fs.ValidPath(rest):
		path = "metaschema/meta/" + rest + ".json"
	default:
		return nil
	}
	data, err := metaschemas.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}
