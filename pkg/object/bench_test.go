package object_test

import (
	"strings"
	"testing"

	"belfry/pkg/object"
)

// book is the object the project measures with: 400 bytes, eight fields.
const book = `{"uuid":"0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e","title":"The Nine Tailors","author":"0199f3a2-1111-7b52-9d0e-3f6a1b2c4d5e",` +
	`"year":1934,"price":12.5,"tags":["mystery","bells","fenland"],"publisher":{"name":"Gollancz","city":"London"},` +
	`"summary":"Change ringing, a stolen emerald necklace, an unknown corpse in another man's grave, and the flood that drowned the fens, told as only she could: quietly, exactly and well."}`

func BenchmarkParse(b *testing.B) {
	data := []byte(book)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := object.Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(book)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := object.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	o, err := object.Parse([]byte(book))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		o.Encode()
	}
}

func BenchmarkField(b *testing.B) {
	data := []byte(book)
	b.ReportAllocs()
	for b.Loop() {
		object.Field(data, "summary")
	}
}

// BenchmarkParseEscapes has the texts that clients escape: many lines, and what is not ASCII.
func BenchmarkParseEscapes(b *testing.B) {
	for name, text := range map[string]string{
		"lines":  strings.Repeat(`A line of a \"text\".\n`, 20),
		"ascii":  strings.Repeat(`\u4e2d\u6587 \ud83d\ude00 `, 20),
		"binary": strings.Repeat("中文 😀 ", 20),
	} {
		data := []byte(`{"uuid":"0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e","text":"` + text + `"}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := object.Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
