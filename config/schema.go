package config

import (
	_ "embed"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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

// A text with ${NAME} gets another value when it is read, so any value can be one.
const fromEnvironment = `\$\{`

// description is what the documentation says about a key.
type description struct{ meaning, initial string }

// schemaOf makes the schema from the functions that read a configuration. describe returns what the documentation says about
// the key at a path.
func schemaOf(describe func(path string) description) fragment {
	r := newRecorder()
	for r.turn = 0; r.turn == 0 || r.turn < r.turns(); r.turn++ {
		d := newDocument("", func(string) (string, bool) { return "", false })
		d.recorder = r
		(&Config{doc: d}).read(newSection(d, "", nil))
	}
	b := schemaBuilder{r, describe}
	root := b.section("")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "belfry's configuration"
	root["description"] = "Printed by `belfry config schema`."
	return root
}

// turns is how often a configuration has to be read until every choice was taken.
func (r *recorder) turns() int {
	most := 1
	for _, choices := range r.choices {
		most = max(most, len(choices))
	}
	return most
}

type schemaBuilder struct {
	*recorder
	describe func(path string) description
}

// at makes the schema of what is at a path: a section, a list or a single value, or one of several of these.
func (b *schemaBuilder) at(path string) fragment {
	var all []fragment
	if v, ok := b.values[path]; ok {
		all = append(all, v.schema())
	}
	if b.words[path] {
		all = append(all, fragment{"type": "string"})
	}
	if b.lists[path] {
		all = append(all, fragment{"type": "array", "maxItems": maxItems, "items": b.at(path + "[]")})
	}
	if b.sections[path] != nil {
		all = append(all, b.section(path))
	}
	schema := fragment{"anyOf": all}
	switch len(all) {
	case 0:
		schema = fragment{"type": []string{"string", "number", "boolean"}} // a list of texts that a parser takes apart
	case 1:
		schema = all[0]
	}
	d := b.describe(path)
	if d.meaning != "" {
		schema["description"] = d.meaning
	}
	// The defaults that depend on other values are in the documentation alone.
	if initial := b.values[path].initial(); initial != nil && d.initial == fmt.Sprint(initial) {
		schema["default"] = initial
	}
	return schema
}

// section makes the schema of a section. An empty one may be null.
func (b *schemaBuilder) section(path string) fragment {
	typePath := join(path, "type")
	variants := b.sections[path]
	if len(b.choices[typePath]) == 0 {
		return b.keys(path, variants[""])
	}
	schema := fragment{"type": []string{"object", "null"}, "properties": fragment{"type": b.at(typePath)}}
	var all []fragment
	for _, choice := range b.choices[typePath] {
		condition := fragment{"properties": fragment{"type": fragment{"const": choice}}}
		if choice != b.defaults[typePath] {
			condition["required"] = []string{"type"}
		}
		all = append(all, fragment{"if": condition, "then": b.keys(path, variants[choice])})
	}
	schema["allOf"] = all
	return schema
}

func (b *schemaBuilder) keys(path string, k *keys) fragment {
	schema := fragment{"type": []string{"object", "null"}, "additionalProperties": false}
	properties := fragment{}
	for _, key := range k.all {
		if key == anyKey {
			schema["additionalProperties"] = b.at(join(path, key))
			continue
		}
		properties[key] = b.at(join(path, key))
	}
	if len(properties) > 0 {
		schema["properties"] = properties
	}
	if len(k.required) > 0 {
		schema["required"] = slices.Sorted(slices.Values(k.required))
		schema["type"] = "object"
	}
	return schema
}

// schema makes the schema of a single value. YAML has numbers and booleans for what is written without quotes.
func (v value) schema() fragment {
	schema := fragment{"type": []string{"string", "number", "boolean"}}
	switch v.zero.(type) {
	case bool:
		schema = fragment{"type": []string{"boolean", "string"}, "pattern": "^(true|false)$|" + fromEnvironment}
	case int, int64:
		schema = fragment{"type": []string{"integer", "string"}, "pattern": `^-?\d+$|` + fromEnvironment}
	}
	if choices := v.choices(); choices != nil {
		return fragment{"anyOf": []fragment{{"enum": choices}, {"type": "string", "pattern": fromEnvironment}}}
	}
	for _, e := range v.expected {
		more := maps.Clone(e.schema)
		if pattern, ok := more["pattern"].(string); ok {
			more["pattern"] = pattern + "|" + fromEnvironment
			schema["type"] = []string{"string", "integer"}
		}
		maps.Copy(schema, more)
	}
	return schema
}

// initial is the default of a value, as it is written in a file; nil if there is none, or it depends on other values.
func (v value) initial() any {
	switch d := v.zero.(type) {
	case time.Duration:
		if d == 0 {
			return nil
		}
		return shortDuration(d)
	case bool:
		return d
	case int:
		return initialNumber(int64(d), v)
	case int64:
		return initialNumber(d, v)
	case string:
		if d != "" {
			return d
		}
	case slog.Level:
		return strings.ToLower(d.String())
	}
	return nil
}

func initialNumber(n int64, v value) any {
	if n == 0 {
		return nil
	}
	for _, e := range v.expected {
		if e.schema["pattern"] != nil {
			if text := showSize(n); !strings.HasSuffix(text, " bytes") {
				return text
			}
		}
	}
	return n
}

// shortDuration writes a duration without the parts that are 0.
func shortDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
