package texts

import (
	"embed"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"

	"belfry/pkg/errs"
)

//go:embed languages/en.yaml languages/de.yaml
var builtIn embed.FS

// Catalog has the texts of all languages. It is safe for concurrent use.
type Catalog struct {
	languages []*Language // English first
	matcher   language.Matcher
}

// English returns the embedded English texts. They lack the ids that Load gets.
func English() *Language { return embedded().languages[0] }

// embedded returns the embedded languages.
var embedded = sync.OnceValue(func() *Catalog {
	c, err := Load("", nil)
	if err != nil {
		panic("texts: " + err.Error()) // they are tested
	}
	return c
})

// Load returns the embedded languages, and those of the files of a folder; "" means no folder. more are further
// English texts, by their ids. Load reports errs.Invalid for a file that can't be read, and for one with an unknown id
// or a text that can't be used.
func Load(folder string, more map[string]string) (*Catalog, error) {
	english := &Language{tag: language.English, texts: map[string]text{}}
	all := map[string]*Language{"en": english}
	for id, t := range more {
		parsed, problem := parsePlain(t)
		if problem != "" {
			return nil, errs.New(errs.Internal, "the text %s %s", id, problem)
		}
		english.texts[id] = parsed
	}
	for _, name := range []string{"en.yaml", "de.yaml"} {
		data, err := builtIn.ReadFile("languages/" + name)
		if err != nil {
			return nil, err
		}
		if err := add(all, file{name: name, tag: language.Make(name[:2]), data: data, embedded: true},
			english); err != nil {
			return nil, err
		}
	}
	files, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := add(all, f, english); err != nil {
			return nil, err
		}
	}
	return newCatalog(all, english), nil
}

// add adds the texts of a file to those of its language.
func add(all map[string]*Language, f file, english *Language) error {
	found, err := f.parse(english)
	if err != nil {
		return err
	}
	l := all[f.tag.String()]
	if l == nil {
		l = &Language{tag: f.tag, texts: map[string]text{}}
		all[f.tag.String()] = l
	}
	maps.Copy(l.texts, found)
	return nil
}

func newCatalog(all map[string]*Language, english *Language) *Catalog {
	c := &Catalog{languages: []*Language{english}}
	tags := []language.Tag{english.tag}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l := all[name]
		if l == english {
			continue
		}
		l.parent = english
		for parent := l.tag.Parent(); parent != language.Und; parent = parent.Parent() {
			if p := all[parent.String()]; p != nil {
				l.parent = p
				break
			}
		}
		c.languages, tags = append(c.languages, l), append(tags, l.tag)
	}
	c.matcher = language.NewMatcher(tags)
	return c
}

// Languages returns all languages, English first.
func (c *Catalog) Languages() []*Language {
	if c == nil {
		c = embedded()
	}
	return slices.Clone(c.languages)
}

// maxAccept is how many bytes of Accept-Language are read. Browsers send fewer than 100.
const maxAccept = 1000

// Accepted returns the fields Accept-Language of a header as one.
func Accepted(h http.Header) string {
	if fields := h.Values("Accept-Language"); len(fields) > 1 {
		return strings.Join(fields, ",")
	}
	return h.Get("Accept-Language")
}

// Match returns the language that a header Accept-Language asks for, English if no language matches. Ranges that are
// malformed, or of no known language, are skipped. A nil catalog has the embedded languages.
func (c *Catalog) Match(accept string) *Language {
	if c == nil {
		c = embedded()
	}
	if len(accept) > maxAccept {
		return c.languages[0]
	}
	ranges := slices.DeleteFunc(strings.Split(accept, ","), func(one string) bool {
		_, _, err := language.ParseAcceptLanguage(one)
		return err != nil
	})
	tags, _, err := language.ParseAcceptLanguage(strings.Join(ranges, ","))
	if err != nil || len(tags) == 0 {
		return c.languages[0]
	}
	_, index, _ := c.matcher.Match(tags...)
	return c.languages[index]
}

// Of returns the language with a tag, English for one that the catalog no longer has.
func (c *Catalog) Of(tag string) *Language {
	for _, l := range c.Languages() {
		if l.Tag() == tag {
			return l
		}
	}
	return c.Languages()[0]
}
