package manual

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hit is a section that a search has found.
type Hit struct {
	Title   string // of the page
	Section string // its heading; "" for the top of the page
	Part    string
	URL     string // relative to the site, with the anchor
	Excerpt []Span
}

// Span is a piece of an excerpt.
type Span struct {
	Text string
	Mark bool // it is a word of the query
}

// Limits of a search.
const (
	maxHits    = 12
	maxPerPage = 3
	maxQuery   = 200 // bytes
)

// Search returns the sections that answer a query best, at most 12.
func Search(text string) []Hit {
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	ix := loadedIndex()
	found, used := ix.score(query(text))
	var hits []Hit
	perPage, texts := map[*Page]int{}, map[*Page][]byte{}
	for _, s := range found {
		at := ix.sections[s.section]
		if len(hits) == maxHits || s.score < found[0].score/8 {
			break
		}
		if perPage[at.page]++; perPage[at.page] > maxPerPage {
			continue
		}
		fragment, ok := texts[at.page]
		if !ok {
			fragment = at.page.HTML()
			texts[at.page] = fragment
		}
		heading := at.page.Headings[at.heading]
		hit := Hit{Title: at.page.Title, Part: at.part.Title, URL: at.page.URL,
			Excerpt: excerpt(sectionText(fragment, heading.Anchor), used)}
		if at.heading > 0 {
			hit.Section, hit.URL = heading.Text, hit.URL+"#"+heading.Anchor
		}
		hits = append(hits, hit)
	}
	return hits
}

// maxSection is how many bytes of a section are searched for an excerpt.
const maxSection = 8 << 10

// sectionText returns the text below a heading, without markup and blocks of code.
func sectionText(fragment []byte, anchor string) string {
	begin := bytes.Index(fragment, []byte(` id="`+anchor+`"`))
	if begin < 0 {
		return ""
	}
	rest := fragment[begin:]
	if end := bytes.Index(rest, []byte("</h")); end >= 0 {
		rest = rest[end+len("</h1>"):]
	}
	var b strings.Builder
	for len(rest) > 0 && b.Len() < maxSection {
		open := bytes.IndexByte(rest, '<')
		if open < 0 {
			break
		}
		b.Write(rest[:open])
		if rest = rest[open:]; isHeading(rest) {
			break
		}
		ends := ">"
		for _, left := range []string{"svg", "pre"} { // pictures and code
			if bytes.HasPrefix(rest[1:], []byte(left)) {
				ends = "</" + left + ">"
			}
		}
		if !isInline(rest) {
			b.WriteByte(' ')
		}
		_, rest, _ = bytes.Cut(rest, []byte(ends))
	}
	return strings.Join(strings.Fields(html.UnescapeString(b.String())), " ")
}

// isHeading reports whether HTML begins with that of a section.
func isHeading(b []byte) bool {
	return len(b) > 4 && b[1] == 'h' && b[2] >= '1' && b[2] <= '6' && b[3] == ' '
}

// isInline reports whether HTML begins with a tag that divides no words.
func isInline(b []byte) bool {
	b = bytes.TrimPrefix(b[1:], []byte("/"))
	for _, tag := range []string{"code", "a", "em", "strong", "del", "kbd"} {
		if rest, ok := bytes.CutPrefix(b, []byte(tag)); ok && len(rest) > 0 && (rest[0] == '>' || rest[0] == ' ') {
			return true
		}
	}
	return false
}

// maxExcerpt is the length of an excerpt, in bytes.
const maxExcerpt = 240

// match is where a text has a word of a query.
type match struct{ begin, end int }

// matchesOf returns the places where a text has words of the index. Most words of a text begin with other letters, and
// are not stemmed.
func matchesOf(text string, words map[string]bool) (matches []match) {
	const compared = 2 // letters that stems keep
	begins := map[string]bool{}
	for w := range words {
		begins[w[:min(compared, len(w))]] = true
	}
	begin := -1
	for i, r := range text + " " {
		if !noWord(r) {
			if begin < 0 {
				begin = i
			}
			continue
		}
		if begin >= 0 {
			word := text[begin:i]
			if start := strings.ToLower(word[:min(compared, len(word))]); begins[start] ||
				strings.ContainsAny(word[1:], capitals) {
				if slices.ContainsFunc(Words(word), func(w string) bool { return words[w] }) {
					matches = append(matches, match{begin, i})
				}
			}
			begin = -1
		}
	}
	return matches
}

const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// excerpt returns the part of a text that has most words of a query, with these marked.
func excerpt(text string, words map[string]bool) []Span {
	matches := matchesOf(text, words)
	from, best := 0, 0
	for i, m := range matches {
		different := map[string]bool{}
		for _, other := range matches[i:] {
			if other.end > m.begin+maxExcerpt-60 {
				break
			}
			different[strings.ToLower(text[other.begin:other.end])] = true
		}
		if len(different) > best {
			from, best = m.begin, len(different)
		}
	}
	from = startOf(text, from)
	to := from
	var all []Span
	plain := func(end int) {
		if end > to {
			all = append(all, Span{Text: text[to:end]})
		}
		to = end
	}
	limit := endOf(text, from+maxExcerpt)
	if from > 0 {
		all = append(all, Span{Text: "… "})
	}
	for _, m := range matches {
		if m.begin < from || m.end > limit {
			continue
		}
		plain(m.begin)
		all = append(all, Span{Text: text[m.begin:m.end], Mark: true})
		to = m.end
	}
	plain(limit)
	if limit < len(text) {
		all = append(all, Span{Text: " …"})
	}
	return all
}

// startOf returns the place before a match where an excerpt begins: that of a sentence, if it is close, else of a word.
func startOf(text string, match int) int {
	const context = 60
	if match < context {
		return 0
	}
	before := text[match-context : match]
	if i := strings.LastIndex(before, ". "); i >= 0 {
		return match - context + i + 2
	}
	if i := strings.IndexByte(before, ' '); i >= 0 {
		return match - context + i + 1
	}
	return match
}

// endOf returns the end of a word at most at a place.
func endOf(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	if i := strings.LastIndexByte(text[:at], ' '); i > at-60 {
		return i
	}
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
