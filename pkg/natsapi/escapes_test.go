package natsapi_test

import (
	"strings"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/wire"
	"belfry/test/kit/hardtext"
)

// TestOperationsStoreStringsInOneForm, and a key is for one request in any encoding.
func TestOperationsStoreStringsInOneForm(t *testing.T) {
	w := open(t)
	w.stage()
	const text = "中文/é<&>😀"
	want := `"title":` + string(object.AppendString(nil, text))
	for name, encode := range hardtext.Encoders() {
		uuid := strings.ToLower(name)
		w.want("", wire.Save, `{"object":{"uuid":`+encode(uuid)+`,"title":`+encode(text)+`}}`)
		w.want("", wire.Update, `{"uuid":`+encode("kim")+`,"object":{"title":`+encode(text)+`}}`)
		for _, uuid := range []string{uuid, "kim"} {
			o, err := w.books.Get(t.Context(), uuid)
			w.must(err)
			if !strings.Contains(string(o.Body), want) {
				t.Errorf("by %s: %s is stored as %s", name, uuid, o.Body)
			}
		}
	}
	first := ""
	for name, encode := range hardtext.Encoders() {
		a := w.want("", wire.Update,
			`{"uuid":"emma","object":{"title":`+encode(text)+`,"o":{`+encode("é/")+`:`+encode(text)+`}}}`, key("k")...)
		if first != "" && a.body != first {
			t.Errorf("by %s: %s, want %s again", name, a.body, first)
		}
		first = a.body
	}
	for name, encode := range hardtext.Encoders() {
		for _, filter := range []string{"title == " + encode(text), encode(text) + " == object.title"} {
			a := w.ask(wire.List, string(object.Object{"filter": object.AppendString(nil, filter)}.Encode()))
			if !strings.Contains(a.body, "one on (title) is needed") { // it is parsed, and has no index
				t.Errorf("by %s, %s: %s", name, filter, a.body)
			}
		}
	}
}
