package site

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"belfry/pkg/api/console/manual"
	"belfry/test/manual/docpages"
)

// page is a page while it is made.
type page struct {
	*manual.Page
	file     string // from the folder of the pages
	source   []byte
	document ast.Node
	anchors  map[string]bool
	sections [][]string // the stems of each heading's section, for the index
}

// markdown is what GitHub renders. What is HTML in a page was checked before: see rawHTML.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough, extension.Linkify),
	goldmark.WithRendererOptions(gmhtml.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(boxes{}, 100))),
)

// parse reads a page, gives its headings anchors, and takes its sections.
func (p *page) parse(s *site) (err error) {
	if p.source, err = os.ReadFile(filepath.Join(s.docs, p.file)); err != nil {
		return err
	}
	p.document = markdown.Parser().Parse(text.NewReader(p.source))
	p.anchors = map[string]bool{}
	var section strings.Builder
	end := func() {
		if len(p.Headings) > 0 {
			p.sections = append(p.sections, manual.Words(section.String()))
		}
		section.Reset()
	}
	err = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				section.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			end()
			h := manual.Heading{Level: n.Level, Text: plainText(n, p.source)}
			h.Anchor = p.anchor(h.Text)
			n.SetAttributeString("id", []byte(h.Anchor))
			p.Headings = append(p.Headings, h)
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				section.Write(line.Value(p.source))
			}
		case *extast.TableCell:
			section.WriteByte(' ')
		case *ast.Text:
			section.Write(n.Segment.Value(p.source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				section.WriteByte(' ')
			}
		case *ast.AutoLink:
			section.Write(n.Label(p.source))
		case *ast.RawHTML:
			p.rawHTML(s, segments(n.Segments, p.source))
		case *ast.HTMLBlock:
			content := segments(n.Lines(), p.source)
			if n.HasClosure() {
				content = append(content, n.ClosureLine.Value(p.source)...)
			}
			p.rawHTML(s, content)
		}
		return ast.WalkContinue, nil
	})
	end()
	switch {
	case len(p.Headings) == 0 || p.Headings[0].Level != 1 || p.document.FirstChild().Kind() != ast.KindHeading:
		s.problem(p.file, "it does not begin with a title (# ...)")
	default:
		p.Title = p.Headings[0].Text
	}
	if p.Label == "" {
		p.Label = p.Title
	}
	return err
}

var (
	permitted = regexp.MustCompile(
		`^(<!--[\s\S]*?-->|<br ?/?>|</?(details|summary|kbd|sub|sup)>|<a id="([a-z0-9-]+)">|</a>|\s)*$`)
	namedAnchor = regexp.MustCompile(`<a id="([^"]+)">`)
)

// anchor returns the anchor of a heading, as GitHub makes it.
func (p *page) anchor(heading string) string {
	base := docpages.Anchor(heading)
	anchor := base
	for i := 1; p.anchors[anchor]; i++ {
		anchor = base + "-" + strconv.Itoa(i)
	}
	p.anchors[anchor] = true
	return anchor
}

// rawHTML checks the HTML of a page, which is rendered as it is.
func (p *page) rawHTML(s *site, content []byte) {
	if !permitted.Match(content) {
		s.problem(p.file, "HTML that the site does not permit: %s", bytes.TrimSpace(content))
	}
	for _, found := range namedAnchor.FindAllSubmatch(content, -1) {
		p.anchors[string(found[1])] = true
	}
}

func segments(all *text.Segments, source []byte) (joined []byte) {
	for i := range all.Len() {
		segment := all.At(i)
		joined = append(joined, segment.Value(source)...)
	}
	return joined
}

// plainText returns the text of a node.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return html.UnescapeString(string(util.UnescapePunctuations([]byte(b.String()))))
}

// links replaces the links and pictures of a page by those of the site.
func (s *site) links(p *page) {
	var links []*ast.Link
	var images []*ast.Image
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Link:
				links = append(links, n)
			case *ast.Image:
				images = append(images, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, link := range links {
		s.link(p, link)
	}
	for _, image := range images {
		s.image(p, image)
	}
}

func (s *site) link(p *page, link *ast.Link) {
	destination := string(link.Destination)
	if external(destination) {
		return
	}
	target, anchor, _ := strings.Cut(destination, "#")
	to, file := p, p.file
	if target != "" {
		file = path.Join(path.Dir(p.file), target)
		if to = s.byFile[file]; to == nil {
			to = s.byFile[path.Join(file, start)] // a folder
		}
	}
	switch {
	case to == nil && strings.HasPrefix(file, "../"), to == nil && path.Ext(file) != ".md":
		if _, err := os.Stat(filepath.Join(s.docs, filepath.FromSlash(file))); err != nil {
			s.problem(p.file, "%s does not exist", destination)
		}
		s.outside(p, link, path.Join("docs", file))
	case to == nil:
		s.problem(p.file, "%s is not a page of the site", destination)
		s.outside(p, link, path.Join("docs", file))
	case anchor != "" && !to.anchors[anchor]:
		s.problem(p.file, "docs/%s has no heading for #%s", to.file, anchor)
		link.Destination = []byte(relative(p.URL, to.URL))
	case target == "":
	case anchor != "":
		link.Destination = []byte(relative(p.URL, to.URL) + "#" + anchor)
	default:
		link.Destination = []byte(relative(p.URL, to.URL))
	}
}

// outside replaces a link to a file of the project by its text and the path.
func (s *site) outside(p *page, link *ast.Link, file string) {
	parent := link.Parent()
	label := plainText(link, p.source)
	for child := link.FirstChild(); child != nil; child = link.FirstChild() {
		parent.InsertBefore(parent, link, child)
	}
	if clean := strings.Trim(label, "`/"); clean != file && !strings.HasSuffix("/"+file, "/"+clean) {
		parent.InsertBefore(parent, link, verbatim(" (<code>"+html.EscapeString(file)+"</code>)"))
	}
	parent.RemoveChild(parent, link)
}

// image inlines a picture that is drawn. A photograph of a screen would be too large: its text is what is left of it.
func (s *site) image(p *page, image *ast.Image) {
	parent, label := image.Parent(), plainText(image, p.source)
	file := path.Join(path.Dir(p.file), string(image.Destination))
	if path.Ext(file) != ".svg" {
		parent.ReplaceChild(parent, image, verbatim(`<em class="picture">Picture: `+html.EscapeString(label)+"</em>"))
		return
	}
	source, err := os.ReadFile(filepath.Join(s.docs, filepath.FromSlash(file)))
	if err == nil {
		var drawn []byte
		if drawn, err = s.draw(file, label, source); err == nil {
			parent.ReplaceChild(parent, image, verbatim(string(drawn)))
			return
		}
	}
	s.problem(p.file, "the picture %s: %v", file, err)
}

// verbatim is a node that is rendered as it is.
func verbatim(content string) ast.Node {
	n := ast.NewString([]byte(content))
	n.SetCode(true)
	return n
}

var comment = regexp.MustCompile(`(?s)<!--.*?-->\n?`)

// render returns the HTML of a page. Each heading but the title has a link to itself.
func (p *page) render() ([]byte, error) {
	_ = ast.Walk(p.document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if h, ok := n.(*ast.Heading); ok && entering && h.Level > 1 {
			id, _ := h.AttributeString("id")
			h.AppendChild(h,
				verbatim(fmt.Sprintf(` <a class="anchor" href="#%s" aria-hidden="true" tabindex="-1">#</a>`, id)))
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.source, p.document); err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	return comment.ReplaceAll(b.Bytes(), nil), nil
}

// boxes renders tables and blocks of code in boxes that can be scrolled, also by the keyboard.
type boxes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (boxes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(extast.KindTable, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		text := "</table></div>\n"
		if entering {
			text = `<div class="scroll" tabindex="0"><table>` + "\n"
		}
		_, err := w.WriteString(text)
		return ast.WalkContinue, err
	})
	code := func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			_, err := w.WriteString("</code></pre>\n")
			return ast.WalkContinue, err
		}
		_, _ = w.WriteString(`<pre tabindex="0"><code`)
		if fenced, ok := n.(*ast.FencedCodeBlock); ok && fenced.Language(source) != nil {
			_, _ = w.WriteString(` class="language-` + html.EscapeString(string(fenced.Language(source))) + `"`)
		}
		_, err := w.WriteString(">" + html.EscapeString(string(segments(n.Lines(), source))))
		return ast.WalkContinue, err
	}
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(ast.KindCodeBlock, code)
}
