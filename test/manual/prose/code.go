package prose

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// CheckCode reads the comments and the texts of a file of Go. A text of several lines is a template or code, one of few
// words is a name, and neither is prose.
func CheckCode(source []byte) (*Page, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	p := &Page{}
	for _, group := range file.Comments {
		p.comment(files.Position(group.Pos()).Line, group.Text())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if s, err := strconv.Unquote(literal.Value); err == nil && strings.Count(s, " ") >= fewWords && !strings.Contains(s, "\n") {
			p.phrases(files.Position(literal.Pos()).Line, s)
		}
		return true
	})
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return p, nil
}

// fewWords is how many spaces a text has at least that is a message.
const fewWords = 3

// comment adds the paragraphs of a comment, without its examples of code.
func (p *Page) comment(line int, text string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.TrimSpace(paragraph) != "" && !strings.HasPrefix(paragraph, "\t") {
			p.paragraph(line, paragraph)
		}
		line += strings.Count(paragraph, "\n") + 2
	}
}
