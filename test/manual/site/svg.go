package site

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"path"
	"regexp"
	"strings"
)

// picture is a drawn picture of a page, with the style sheet that it brought.
type picture struct{ class, styles string }

var (
	refersTo = regexp.MustCompile(`url\(['"]?#([^'")]+)['"]?\)`)
	rootRule = regexp.MustCompile(`:root\b|(^|[}\s,])svg\b`)
)

// draw returns an SVG file as a part of a page. The Content-Security-Policy of the console permits no style in a page:
// the attribute style becomes attributes of its own, and a style sheet becomes a part of that of all pictures, below
// the class of this one. Ids get the name of the picture, so that those of several do not collide.
func (s *site) draw(file, label string, source []byte) ([]byte, error) {
	name := strings.TrimSuffix(path.Base(file), ".svg")
	class := "picture-" + name
	d := xml.NewDecoder(bytes.NewReader(source))
	var b, styles strings.Builder
	open, inStyle := 0, false
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			open++
			switch tag := qualified(t.Name); tag {
			case "style":
				inStyle = true
			case "script", "foreignObject", "image", "animate", "set":
				return nil, fmt.Errorf("it has the element %s", tag)
			default:
				text, err := element(tag, t.Attr, name, label)
				if err != nil {
					return nil, err
				}
				b.WriteString(text)
			}
		case xml.EndElement:
			open--
			if inStyle {
				inStyle = false
				continue
			}
			b.WriteString("</" + qualified(t.Name) + ">")
		case xml.CharData:
			switch {
			case inStyle:
				styles.Write(t)
			case open > 0 && len(bytes.TrimSpace(t)) > 0:
				b.WriteString(html.EscapeString(string(t)))
			}
		}
	}
	if rules := strings.TrimSpace(styles.String()); rules != "" {
		rules = refersTo.ReplaceAllString(rootRule.ReplaceAllString(rules, "${1}&"), "url(#"+name+"-$1)")
		s.keep(picture{class, rules})
	}
	return []byte(`<span class="figure ` + class + `">` + b.String() + `</span>`), nil
}

func (s *site) keep(p picture) {
	for _, known := range s.pictures {
		if known == p {
			return
		}
		if known.class == p.class {
			s.problem("images", "two pictures have the name %s", p.class)
		}
	}
	s.pictures = append(s.pictures, p)
}

func qualified(n xml.Name) string {
	if n.Space != "" {
		return n.Space + ":" + n.Local
	}
	return n.Local
}

// element returns the start of an element.
func element(tag string, attributes []xml.Attr, name, label string) (string, error) {
	var b strings.Builder
	b.WriteString("<" + tag)
	set := func(key, value string) {
		b.WriteString(" " + key + `="` + html.EscapeString(value) + `"`)
	}
	for _, a := range attributes {
		key, value := qualified(a.Name), refersTo.ReplaceAllString(a.Value, "url(#"+name+"-$1)")
		switch {
		case strings.HasPrefix(key, "on"):
			return "", fmt.Errorf("it has the attribute %s", key)
		case strings.HasPrefix(key, "xmlns"), key == "version", key == "xml:lang":
		case tag == "svg" && (key == "role" || key == "aria-label" || key == "aria-labelledby"):
		case key == "id":
			set(key, name+"-"+value)
		case key == "href" || key == "xlink:href":
			if !strings.HasPrefix(value, "#") {
				return "", fmt.Errorf("it refers to %s", value)
			}
			set("href", "#"+name+"-"+value[1:])
		case key == "style":
			for declaration := range strings.SplitSeq(value, ";") {
				if property, v, ok := strings.Cut(declaration, ":"); ok {
					set(strings.TrimSpace(property), strings.TrimSpace(v))
				}
			}
		default:
			set(key, value)
		}
	}
	if tag == "svg" {
		set("role", "img")
		set("aria-label", label)
	}
	b.WriteString(">")
	return b.String(), nil
}

// styles returns the style sheet of all pictures, each below its class.
func (s *site) styles() []byte {
	var b bytes.Buffer
	b.WriteString("/* Styles of the pictures of the documentation. */\n")
	for _, p := range s.pictures {
		fmt.Fprintf(&b, ".%s {\n%s\n}\n", p.class, p.styles)
	}
	return b.Bytes()
}
