package search

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// TestAFormIsKeptOfTextsAlone: searches neither use nor fill the forms that are kept, so their time reveals nothing of
// what others have written. Memory is bounded.
func TestAFormIsKeptOfTextsAlone(t *testing.T) {
	l, err := languageOf("hu")
	if err != nil {
		t.Fatal(err)
	}
	kept := func(word string) bool { return l.forms.now[word] != nil || l.forms.before[word] != nil }
	x := &textIndex{form: form, settings: Settings{Language: "hu"}}
	for _, q := range []string{"Kereskedelem", "Kereskedelem*", `"Kereskedelem"`} {
		if _, err := x.parts(q); err != nil {
			t.Fatal(err)
		}
	}
	if kept("Kereskedelem") {
		t.Error("what was searched for is kept")
	}
	long := strings.Repeat("x", maxFormWord+1)
	(analyzer{l, asWords}).Analyze([]byte("Kereskedelem " + long))
	if !kept("Kereskedelem") || kept(long) {
		t.Error("of a text the long word is kept alone")
	}
	for i := range 3 * maxForms {
		(analyzer{l, asWords}).Analyze([]byte(fmt.Sprintf("w%d gyakran", i)))
	}
	if n := len(l.forms.now) + len(l.forms.before); n > 2*maxForms || n < maxForms {
		t.Errorf("%d forms are kept", n)
	}
	if !kept("gyakran") || kept("Kereskedelem") {
		t.Error("what is met often is not kept")
	}
}

// TestAFormKeepsNoText: a word that is kept for later is a copy, so it does not keep the memory of its text.
func TestAFormKeepsNoText(t *testing.T) {
	l, err := languageOf("fi")
	if err != nil {
		t.Fatal(err)
	}
	text := "talossa on kissa"
	l.words(text, &l.forms)
	begins := uintptr(unsafe.Pointer(unsafe.StringData(text)))
	for word, f := range l.forms.now {
		for _, kept := range append([]string{word, f.text, f.folded, f.normal}, f.stems...) {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(kept))); begins <= at && at < begins+uintptr(len(text)) {
				t.Errorf("%q is of the text", kept)
			}
		}
	}
	if l.forms.now["talossa"] == nil {
		t.Error("nothing is kept")
	}
}
