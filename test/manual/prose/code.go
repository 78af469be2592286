package prose

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// CheckCode reads the comments and the texts of a Go file. It skips three kinds of texts: those of several lines, which
// are templates or code, those of few words, which are names, and those on a line with the comment "CEL's text".
func CheckCode(source []byte) (*Page, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	p := &Page{}
	quoted := map[int]bool{}
	for _, group := range file.Comments {
		line := files.Position(group.Pos()).Line
		p.comment(line, group.Text())
		quoted[line] = strings.TrimSpace(group.Text()) == quotedText
	}
	var inspect func(ast.Node) bool
	inspect = func(n ast.Node) bool {
		expression, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		s, others := message(expression)
		if len(others) == 1 && others[0] == expression {
			return true
		}
		line := files.Position(expression.Pos()).Line
		if !quoted[line] && strings.Count(s, " ") >= fewWords && !strings.Contains(s, "\n") {
			p.phrases(line, s)
		}
		for _, other := range others {
			ast.Inspect(other, inspect)
		}
		return false
	}
	ast.Inspect(file, inspect)
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	return p, nil
}

// message is the text of a literal, or of several that are put together, with what else is put between them.
func message(e ast.Expr) (text string, others []ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s, nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, before := message(e.X)
			right, after := message(e.Y)
			return left + right, append(before, after...)
		}
	}
	return "", []ast.Expr{e}
}

// quotedText is the comment on a line whose texts quote another project.
const quotedText = "CEL's text"

// fewWords is the least number of spaces in a message.
const fewWords = 3

// item is the start of an item of a doc comment's list.
var item = regexp.MustCompile(`(?m)^ {1,3}(?:[-*+•]|\d+[.)]) +`)

// comment adds the paragraphs of a comment and the items of its lists, without its examples of code.
func (p *Page) comment(line int, text string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.TrimSpace(paragraph) != "" && !strings.HasPrefix(paragraph, "\t") {
			from := 0
			for _, m := range item.FindAllStringIndex(paragraph, -1) {
				p.commentPart(line, paragraph, from, m[0])
				from = m[1]
			}
			p.commentPart(line, paragraph, from, len(paragraph))
		}
		line += strings.Count(paragraph, "\n") + 2
	}
}

// commentPart adds a part of a comment's paragraph that begins at a line.
func (p *Page) commentPart(line int, paragraph string, from, to int) {
	if part := paragraph[from:to]; strings.TrimSpace(part) != "" {
		p.paragraph(line+strings.Count(paragraph[:from], "\n"), part)
	}
}
