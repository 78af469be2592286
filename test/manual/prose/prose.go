// Package prose checks the measurable part of docs/style.md: the length of sentences and paragraphs, and phrases that
// have a plainer form. Tables, code and HTML are left out.
package prose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Limits of a page, in words.
const (
	MeanSentence = 25
	MaxSentence  = 40
	MaxParagraph = 80
)

// Page is what a page consists of, and what is wrong with it.
type Page struct {
	Sentences      []Sentence
	Paragraphs     int
	LongParagraphs int
	Findings       []Finding // by line
}

// Sentence is one of a paragraph, a list item or a heading, as it is read.
type Sentence struct {
	Line  int
	Text  string
	Words int
}

// Finding is a place that docs/style.md would have otherwise.
type Finding struct {
	Line    int
	Message string
}

// Check reads a page in Markdown.
func Check(source []byte) *Page {
	p := &Page{}
	lines := newLineIndex(source)
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case ast.KindParagraph, ast.KindTextBlock:
			p.paragraph(lines.of(n), plain(n, source))
			return ast.WalkSkipChildren, nil
		case ast.KindHeading:
			p.phrases(lines.of(n), plain(n, source))
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil // tables have no paragraphs
	})
	if mean := p.Mean(); mean > MeanSentence {
		p.find(1, "sentences have %.1f words on average, at most %d are allowed", mean, MeanSentence)
	}
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return p
}

// Mean is the average length of a sentence in words.
func (p *Page) Mean() float64 {
	if len(p.Sentences) == 0 {
		return 0
	}
	return float64(p.Words()) / float64(len(p.Sentences))
}

// Words is how many words are in sentences.
func (p *Page) Words() (n int) {
	for _, s := range p.Sentences {
		n += s.Words
	}
	return n
}

// Longer is how many sentences have more words than a number.
func (p *Page) Longer(words int) (n int) {
	for _, s := range p.Sentences {
		if s.Words > words {
			n++
		}
	}
	return n
}

func (p *Page) find(line int, format string, args ...any) {
	p.Findings = append(p.Findings, Finding{line, fmt.Sprintf(format, args...)})
}

// paragraph adds one, which begins at a line.
func (p *Page) paragraph(line int, paragraph string) {
	p.Paragraphs++
	if n := Words(paragraph); n > MaxParagraph {
		p.LongParagraphs++
		p.find(line, "a paragraph of %d words, at most %d are allowed: split it by its ideas", n, MaxParagraph)
	}
	for _, s := range split(paragraph) {
		at := line + strings.Count(s.before, "\n")
		sentence := Sentence{Line: at, Text: strings.Join(strings.Fields(s.text), " "), Words: Words(s.text)}
		if sentence.Words == 0 {
			continue
		}
		p.Sentences = append(p.Sentences, sentence)
		if sentence.Words > MaxSentence {
			p.find(at, "a sentence of %d words, at most %d are allowed: %q", sentence.Words, MaxSentence,
				start(sentence.Text))
		}
		p.phrases(at, sentence.Text)
	}
}

// phrases finds those that rules replace.
func (p *Page) phrases(line int, sentence string) {
	for _, r := range rules {
		for _, found := range r.pattern.FindAllString(sentence, -1) {
			if r.unless == nil || !r.unless.MatchString(sentence) {
				p.find(line, "%q: %s", strings.TrimSpace(found), r.instead)
			}
		}
	}
}

// start is the beginning of a sentence, by which people find it.
func start(sentence string) string {
	if all := strings.Fields(sentence); len(all) > 10 {
		return strings.Join(all[:10], " ") + " …"
	}
	return sentence
}
