package site

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"belfry/pkg/api/console/manual"
)

// site is the site while it is made.
type site struct {
	docs     string // the folder of the pages
	parts    []manual.Part
	pages    []*page // in the order of the contents
	byFile   map[string]*page
	pictures []picture
	problems []error
}

func (s *site) problem(file, format string, args ...any) {
	s.problems = append(s.problems, fmt.Errorf("docs/%s: %s", file, fmt.Sprintf(format, args...)))
}

// The page of the contents, the part of pages for people who work on belfry, and that of decisions, which the contents
// need not list.
const (
	start         = "README.md"
	internalPart  = "Internals"
	decisionsPart = "Decisions"
	decisions     = "adr"
)

// contents reads the parts and their pages from the links of the start page, below the heading of each part.
func (s *site) contents() error {
	source, err := os.ReadFile(filepath.Join(s.docs, start))
	if err != nil {
		return err
	}
	s.add(&s.newPart("Start").Pages, start, "All pages")
	var part *manual.Part
	document := markdown.Parser().Parse(text.NewReader(source))
	err = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				part = s.newPart(plainText(n, source))
			}
		case *ast.Link:
			target, anchor, _ := strings.Cut(string(n.Destination), "#")
			if part == nil || anchor != "" || path.Ext(target) != ".md" || external(target) ||
				strings.HasPrefix(target, "..") {
				return ast.WalkContinue, nil
			}
			if s.byFile[target] != nil {
				s.problem(start, "%s is listed twice", target)
				return ast.WalkContinue, nil
			}
			s.add(&part.Pages, target, plainText(n, source))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	return s.rest()
}

// rest adds the decisions that the contents do not list, and reports other pages that they lack.
func (s *site) rest() error {
	var unlisted []string
	err := filepath.WalkDir(s.docs, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".md" {
			return err
		}
		name, err := filepath.Rel(s.docs, file)
		switch name = filepath.ToSlash(name); {
		case s.byFile[name] != nil:
		case path.Dir(name) == decisions:
			unlisted = append(unlisted, name)
		default:
			s.problem(start, "%s is not listed", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	if slices.Sort(unlisted); len(unlisted) > 0 {
		part := s.newPart(decisionsPart)
		for _, name := range unlisted {
			s.add(&part.Pages, name, "")
		}
	}
	s.parts = slices.DeleteFunc(s.parts, func(p manual.Part) bool { return len(p.Pages) == 0 })
	return nil
}

func (s *site) newPart(title string) *manual.Part {
	s.parts = append(s.parts, manual.Part{Title: title, Internal: title == internalPart || title == decisionsPart})
	return &s.parts[len(s.parts)-1]
}

// add adds a page to a part. A label that is left out is the page's title.
func (s *site) add(to *[]*manual.Page, file, label string) {
	p := &page{Page: &manual.Page{URL: urlOf(file), Label: label}, file: file}
	*to = append(*to, p.Page)
	s.pages = append(s.pages, p)
	s.byFile[file] = p
}

// urlOf returns the URL of a page, relative to the site. Pages at the top of the folder have a folder of their own:
// "search" is a route of the site.
func urlOf(file string) string {
	url := strings.TrimSuffix(file, ".md")
	switch {
	case file == start:
		return ""
	case path.Base(url) == "README":
		return path.Dir(url)
	case path.Dir(url) == ".":
		return "internals/" + url
	}
	return url
}

// external reports whether a link leads to another site.
func external(target string) bool {
	return strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:")
}

// relative returns a link from a page to a URL of the site.
func relative(from, to string) string {
	up := strings.Repeat("../", strings.Count(from, "/"))
	if up+to == "" {
		return "./"
	}
	return up + to
}
