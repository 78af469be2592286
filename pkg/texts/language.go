package texts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// Language has the texts of one language. It is safe for concurrent use.
type Language struct {
	tag    language.Tag
	texts  map[string]text
	parent *Language // whose texts it has where it lacks its own; nil for English
}

// text is a text in its forms. A text without plurals has the form plural.Other.
type text struct {
	forms map[plural.Form][]segment
	raw   string // of a template
}

// segment is a part of a text: a literal, or a placeholder.
type segment struct{ literal, name string }

// Tag returns the tag of the language, such as de, or pt-BR.
func (l *Language) Tag() string { return l.tag.String() }

// RightToLeft reports whether the language is written from right to left. A nil language is not.
func (l *Language) RightToLeft() bool {
	if l == nil {
		return false
	}
	script, _ := l.tag.Script()
	switch script.String() {
	case "Adlm", "Arab", "Aran", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi":
		return true
	}
	return false
}

// Has reports whether there is a text with an id, in the language or in one that it falls back to.
func (l *Language) Has(id string) bool {
	_, in := l.find(id)
	return in != nil
}

// find returns a text, and the language that has it; nil for none.
func (l *Language) find(id string) (text, *Language) {
	for ; l != nil; l = l.parent {
		if t, ok := l.texts[id]; ok {
			return t, l
		}
	}
	return text{}, nil
}

// Raw returns a text as it is in its file; "" for an unknown id. It is for texts without placeholders, and templates.
func (l *Language) Raw(id string) string {
	t, _ := l.find(id)
	return t.raw
}

// IDs returns the ids of all texts of the language itself, sorted.
func (l *Language) IDs() []string { return slices.Sorted(maps.Keys(l.texts)) }

// Translates reports whether there is a text with an id other than the English one.
func (l *Language) Translates(id string) bool {
	for ; l != nil && l.parent != nil; l = l.parent {
		if l.Own(id) {
			return true
		}
	}
	return false
}

// Own reports whether the language itself has a text.
func (l *Language) Own(id string) bool {
	_, ok := l.texts[id]
	return ok
}

// Fill returns a text with the values of its placeholders. literal is applied to what stands between them; nil leaves
// it as it is. The number of plurals is the value of count. An unknown id is returned itself: a person can report it.
func (l *Language) Fill(id string, values map[string]any, literal func(string) string) string {
	t, in := l.find(id)
	if in == nil {
		return id
	}
	if literal == nil {
		literal = func(s string) string { return s }
	}
	form := plural.Other
	if n, counted := values["count"].(int); counted && len(t.forms) > 1 {
		form = plural.Cardinal.MatchPlural(in.tag, n, 0, 0, 0, 0)
	}
	segments, ok := t.forms[form]
	if !ok {
		segments = t.forms[plural.Other]
	}
	var b strings.Builder
	for _, s := range segments {
		if s.name == "" {
			b.WriteString(literal(s.literal))
		} else if v, ok := values[s.name]; ok {
			fmt.Fprint(&b, v)
		}
	}
	return b.String()
}

// Text is Fill with the names and values of placeholders in turn.
func (l *Language) Text(id string, pairs ...string) string {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return l.Fill(id, values, nil)
}

// Device returns a browser and a system in the language, such as "Firefox on Linux" in English, and other names as they
// are.
func (l *Language) Device(english string) string {
	if browser, system, both := strings.Cut(english, " on "); both {
		return l.Text("account.deviceOn", "browser", browser, "system", system)
	}
	return english
}

// Time returns a time in UTC, in the form of the language.
func (l *Language) Time(at time.Time) string {
	at = at.UTC()
	return l.Text("time", "year", at.Format("2006"), "month", at.Format("01"), "day", at.Format("02"), "hour",
		at.Format("15"), "minute", at.Format("04"))
}
