package schema

import (
	"embed"
	"io/fs"
	"strings"
)

// draft is a version of JSON Schema. The zero value is not a draft.
type draft uint8

const (
	draft07 draft = iota + 1
	draft2019
	draft2020
)

const (
	uri2020 = "https://json-schema.org/draft/2020-12/schema"
	uri2019 = "https://json-schema.org/draft/2019-09/schema"
	uri07   = "http://json-schema.org/draft-07/schema"
)

func (d draft) String() string {
	switch d {
	case draft07:
		return "draft-07"
	case draft2020:
		return "draft 2020-12"
	default:
		return "draft 2019-09"
	}
}

// canonicalURI returns a URI of json-schema.org as its draft writes it: http and https name the same.
func canonicalURI(uri string) string {
	for _, scheme := range []string{"http://", "https://"} {
		path, ours := strings.CutPrefix(uri, scheme+"json-schema.org/")
		if !ours {
			continue
		}
		if strings.HasPrefix(path, "draft/") {
			return "https://json-schema.org/" + path
		}
		return "http://json-schema.org/" + path
	}
	return uri
}

// olderDrafts are those that draft-07 succeeds.
const olderDrafts = "http://json-schema.org/draft-0"

// draftOf reads a $schema.
func draftOf(uri string) (draft, bool) {
	switch canonicalURI(strings.TrimSuffix(uri, "#")) {
	case uri2020:
		return draft2020, true
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

// position of the schemas in a keyword of the draft. definitions and $defs hold
// schemas in every draft: a schema may refer to either.
func (d draft) position(keyword string) position {
	switch keyword {
	case "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames":
		return oneSchema
	case "additionalItems":
		if d == draft2020 {
			return notSchema
		}
		return oneSchema
	case "allOf", "anyOf", "oneOf":
		return schemaList
	case "properties", "patternProperties", "definitions", "$defs":
		return schemaMap
	case "items":
		if d == draft2020 {
			return oneSchema
		}
		return schemaItems
	}
	switch {
	case d == draft07 && keyword == "dependencies":
		return schemaOrSet
	case d == draft2020 && keyword == "prefixItems":
		return schemaList
	case d >= draft2019 && keyword == "dependentSchemas":
		return schemaMap
	case d >= draft2019 &&
		(keyword == "unevaluatedItems" || keyword == "unevaluatedProperties" || keyword == "contentSchema"):
		return oneSchema
	}
	return notSchema
}

// foreign returns, for a keyword of another draft that would be ignored without a
// word, what to write instead; "" for any other.
func (d draft) foreign(keyword string) string {
	switch keyword {
	case "prefixItems":
		return d.unless(draft2020, "write it as an array in items, or declare "+uri2020+" in $schema")
	case "$dynamicRef", "$dynamicAnchor":
		return d.unless(draft2020, "declare "+uri2020+" in $schema")
	case "$recursiveRef", "$recursiveAnchor":
		if d == draft2020 {
			return "use $dynamicRef and $dynamicAnchor"
		}
		return d.unless(draft2019, "declare "+uri2019+" in $schema")
	case "additionalItems":
		if d == draft2020 {
			return "write the array of items as prefixItems, and this as items"
		}
	case "dependencies":
		return d.unless(draft07, "use dependentRequired or dependentSchemas, or declare draft-07 in $schema")
	}
	if d > draft07 {
		return ""
	}
	switch keyword {
	case "dependentRequired", "dependentSchemas":
		return "use dependencies, or declare " + uri2020 + " in $schema"
	case "unevaluatedItems", "unevaluatedProperties", "minContains", "maxContains", "$anchor":
		return "declare " + uri2020 + " in $schema"
	}
	return ""
}

// unless returns advice for a keyword that only one draft has.
func (d draft) unless(only draft, advice string) string {
	if d == only {
		return ""
	}
	return advice
}

//go:embed metaschema
var metaschemas embed.FS

// metaschema returns the embedded text of a draft's own schema or of one of its
// vocabularies, and the draft; nil for any other URI.
func metaschema(uri string) ([]byte, draft) {
	var path string
	d := draft2020
	switch uri = canonicalURI(uri); uri {
	case uri2020:
		path = "metaschema/draft2020-12.json"
	case uri2019:
		path, d = "metaschema/draft2019-09.json", draft2019
	case uri07:
		path, d = "metaschema/draft-07.json", draft07
	default:
		name, found := strings.CutPrefix(uri, "https://json-schema.org/draft/2020-12/meta/")
		path = "metaschema/meta2020-12/" + name + ".json"
		if !found {
			name, found = strings.CutPrefix(uri, "https://json-schema.org/draft/2019-09/meta/")
			path, d = "metaschema/meta2019-09/"+name+".json", draft2019
		}
		if !found || !fs.ValidPath(name) {
			return nil, 0
		}
	}
	data, err := metaschemas.ReadFile(path)
	if err != nil {
		return nil, 0
	}
	return data, d
}
