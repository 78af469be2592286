package schema_test

import (
	"testing"
)

// bookSchema is a typical schema of a store; book is an object of 400 bytes that
// matches it.
const (
	bookSchema = `{
  "type": "object",
  "required": ["title", "author", "year"],
  "properties": {
    "uuid": {"type": "string", "pattern": "^[0-9a-f-]{36}$"},
    "title": {"type": "string", "minLength": 1, "maxLength": 200},
    "author": {"type": "string"},
    "year": {"type": "integer", "minimum": 1450, "maximum": 2100},
    "price": {"type": "number", "minimum": 0, "multipleOf": 0.01},
    "tags": {"type": "array", "maxItems": 20, "uniqueItems": true, "items": {"type": "string", "maxLength": 40}},
    "publisher": {"$ref": "#/$defs/publisher"},
    "summary": {"type": "string", "maxLength": 2000}
  },
  "additionalProperties": false,
  "$defs": {
    "publisher": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "city": {"type": "string"}}}
  }
}`
	book = `{"uuid":"0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e","title":"The Nine Tailors","author":"0199f3a2-1111-7b52-9d0e-3f6a1b2c4d5e",` +
		`"year":1934,"price":12.5,"tags":["mystery","bells","fenland"],"publisher":{"name":"Gollancz","city":"London"},` +
		`"summary":"Change ringing, a stolen emerald necklace, an unknown corpse in another man's grave, and a flood; told exactly, quietly and well."}`
)

func BenchmarkValidate(b *testing.B) {
	s := mustCompile(b, bookSchema)
	doc := []byte(book)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(b.Context(), doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidateParallel(b *testing.B) {
	s := mustCompile(b, bookSchema)
	doc := []byte(book)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Validate(b.Context(), doc); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, bookSchema)
	}
}
