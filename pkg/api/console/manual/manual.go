package manual

import (
	"bytes"
	"embed"
	"encoding/json"
	"strings"
	"sync"

	"belfry/internal/gunzip"
)

//go:embed site/*.gz
var files embed.FS

// Part is a part of the contents: Tutorial, Guides, Reference, Internals, Decisions.
type Part struct {
	Title    string  `json:"title"`
	Internal bool    `json:"internal,omitempty"` // it is for people who work on belfry, and counts less in searches
	Pages    []*Page `json:"pages"`
}

// Page is a page of the site.
type Page struct {
	URL      string    `json:"url"`   // relative to the site: "guides/log-in"; "" is the start page
	Title    string    `json:"title"` // its first heading
	Label    string    `json:"label"` // in the contents
	Headings []Heading `json:"headings"`
}

// Heading is a heading of a page, and with it the section that it begins.
type Heading struct {
	Level  int    `json:"level"`
	Anchor string `json:"anchor"`
	Text   string `json:"text"`
}

// FileName returns the name of the embedded file of a page.
func FileName(url string) string {
	if url == "" {
		url = "index"
	}
	return strings.ReplaceAll(url, "/", ".") + ".gz"
}

// The other files of the site.
const (
	ContentsFile = "contents.gz"
	WordsFile    = "words.gz"
	PicturesFile = "pictures.gz"
)

// site is what contents.gz has.
type site struct {
	parts []Part
	pages map[string]*Page
	order []*Page
}

// loaded reads the contents, once. An error is one of the program.
var loaded = sync.OnceValue(func() *site {
	s := &site{pages: map[string]*Page{}}
	if err := json.Unmarshal(read(ContentsFile), &s.parts); err != nil {
		panic("manual: " + err.Error())
	}
	for _, part := range s.parts {
		for _, page := range part.Pages {
			s.pages[page.URL] = page
			s.order = append(s.order, page)
		}
	}
	return s
})

// read returns the content of an embedded file, which a test reads as well.
func read(name string) []byte {
	packed, err := files.ReadFile("site/" + name)
	if err != nil {
		panic("manual: " + err.Error())
	}
	return gunzip.Bytes(packed)
}

// Contents returns the parts in order. The first part has the start page alone. Callers must not change them.
func Contents() []Part { return loaded().parts }

// Find returns the page at a URL, or nil.
func Find(url string) *Page { return loaded().pages[url] }

// Around returns the pages before and after a page in the contents, nil at the ends.
func (p *Page) Around() (before, after *Page) {
	order := loaded().order
	for i, page := range order {
		if page != p {
			continue
		}
		if i > 0 {
			before = order[i-1]
		}
		if i+1 < len(order) {
			after = order[i+1]
		}
	}
	return before, after
}

// HTML returns the fragment of a page. Its links are relative to the page's URL.
func (p *Page) HTML() []byte { return read(FileName(p.URL)) }

// Has reports whether a page has an anchor. The top of the page, "", is one.
func (p *Page) Has(anchor string) bool {
	return anchor == "" || bytes.Contains(p.HTML(), []byte(` id="`+anchor+`"`))
}

// Pictures returns the style sheet of the pictures in pages.
func Pictures() []byte { return read(PicturesFile) }
