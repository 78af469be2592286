package config

import (
	_ "embed"

	"belfry/internal/gunzip"
)

// schemaFile is the schema, compressed: the plain file is for editors.
//
//go:embed belfry.schema.json.gz
var schemaFile []byte

// SchemaName is how the schema's file is called beside a configuration that names it for editors.
const SchemaName = "belfry.schema.json"

// Schema returns the JSON Schema of a configuration, for editors. It accepts every configuration that Load accepts, and
// refuses unknown keys as Load does; what only Load can check, such as references and files, it leaves to Load.
func Schema() []byte { return gunzip.Bytes(schemaFile) }
