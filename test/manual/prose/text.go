package prose

import (
	"regexp"
	"sort"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// code stands for a code span: one word, without the punctuation that code has.
const code = "Code"

// plain is the text of a block as it is read: without markup, with its line breaks.
func plain(block ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			b.WriteString(code)
			return ast.WalkSkipChildren, nil
		case *ast.Image, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		case *ast.AutoLink:
			b.WriteString("URL")
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(n.Value)
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// Words counts those of a text. A word has a letter or a digit, as the bars of a table do not.
func Words(s string) (n int) {
	for _, field := range strings.Fields(s) {
		if strings.IndexFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0 {
			n++
		}
	}
	return n
}

// A sentence ends with a mark before a space and something that begins one.
var (
	end          = regexp.MustCompile(`[.!?][)"'”’*_]*\s+`)
	begin        = regexp.MustCompile(`^["'“‘(*_]*[\p{Lu}\d]|^["'“‘(*_]*` + code + `|^belfry\b`)
	abbreviation = regexp.MustCompile(`(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|No|approx|St|Mr|Ms|Dr)\.\s+$`)
)

type part struct{ before, text string }

// split returns the sentences of a paragraph.
func split(paragraph string) (all []part) {
	from := 0
	for _, m := range end.FindAllStringIndex(paragraph, -1) {
		if !begin.MatchString(paragraph[m[1]:]) || abbreviation.MatchString(paragraph[from:m[1]]) {
			continue
		}
		all = append(all, part{paragraph[:from], paragraph[from:m[1]]})
		from = m[1]
	}
	return append(all, part{paragraph[:from], paragraph[from:]})
}

// lineIndex knows where the lines of a page begin.
type lineIndex []int

func newLineIndex(source []byte) lineIndex {
	index := lineIndex{0}
	for i, c := range source {
		if c == '\n' {
			index = append(index, i+1)
		}
	}
	return index
}

// of is the number of a block's first line.
func (l lineIndex) of(n ast.Node) int {
	if n.Lines().Len() == 0 {
		return 1
	}
	at := n.Lines().At(0).Start
	return sort.SearchInts(l, at+1)
}
