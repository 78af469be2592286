package texts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/feature/plural"

	"belfry/config/yamltext"
	"belfry/internal/nearest"
	"belfry/pkg/errs"
)

// parse returns the texts of a file by their ids.
func (f file) parse(english *Language) (map[string]text, error) {
	root, fault := yamltext.Parse(f.data)
	switch {
	case fault != nil && fault.Line == 0:
		return nil, errs.New(errs.Invalid, "%s %s", f.name, fault.Message)
	case fault != nil:
		return nil, errs.New(errs.Invalid, "%s, line %d: %s", f.name, fault.Line, fault.Message)
	}
	p := &parser{file: f, english: english, found: map[string]text{}}
	if root == nil || yamltext.IsNull(root) {
		return nil, nil
	}
	if err := p.section("", root); err != nil {
		return nil, err
	}
	return p.found, nil
}

type parser struct {
	file    file
	english *Language
	found   map[string]text
}

func (p *parser) problem(n *yaml.Node, format string, args ...any) error {
	return errs.New(errs.Invalid, "%s, line %d: %s", p.file.name, n.Line, fmt.Sprintf(format, args...))
}

// section reads the texts below an id.
func (p *parser) section(id string, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return p.problem(n, "expected texts by their ids, such as login: {title: Log in}")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], yamltext.Dealias(n.Content[i+1])
		name := strings.TrimPrefix(id+"."+key.Value, ".")
		if _, twice := p.found[name]; twice {
			return p.problem(key, "%s is there twice", name)
		}
		var err error
		switch {
		case p.isText(name, value):
			err = p.text(name, key, value)
		case value.Kind == yaml.MappingNode && (p.file.embedded || p.isSection(name)):
			err = p.section(name, value)
		default:
			err = p.unknown(name, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isText reports whether an id is that of a text: English has it.
func (p *parser) isText(id string, value *yaml.Node) bool {
	if p.file.embedded {
		return value.Kind == yaml.ScalarNode || isPlural(value)
	}
	return p.english.Own(id)
}

func (p *parser) isSection(id string) bool {
	for known := range p.english.texts {
		if strings.HasPrefix(known, id+".") {
			return true
		}
	}
	return false
}

func (p *parser) unknown(id string, n *yaml.Node) error {
	if near := nearest.Of(id, slices.Sorted(maps.Keys(p.english.texts))); near != "" {
		return p.problem(n, "there is no text %s: did you mean %s?", id, near)
	}
	return p.problem(n, "there is no text %s: remove it", id)
}

var forms = map[string]plural.Form{"zero": plural.Zero, "one": plural.One, "two": plural.Two, "few": plural.Few,
	"many": plural.Many, "other": plural.Other}

func isPlural(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == "other" && n.Content[i+1].Kind == yaml.ScalarNode {
			return true
		}
	}
	return false
}

// text reads a text.
func (p *parser) text(id string, key, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.MappingNode && (p.file.embedded || len(p.english.texts[id].forms) > 1):
		return p.plural(id, n)
	case n.Kind != yaml.ScalarNode || yamltext.IsNull(n) || strings.TrimSpace(n.Value) == "":
		return p.problem(key, "%s: expected a text", id)
	case len(n.Value) > maxText:
		return p.problem(key, "%s has more than %d bytes", id, maxText)
	case strings.HasPrefix(id, "mails."):
		p.found[id] = text{raw: n.Value}
		return nil
	}
	t, err := p.plain(id, n)
	if err != nil {
		return err
	}
	p.found[id] = t
	return nil
}

// plain reads a text with placeholders.
func (p *parser) plain(id string, n *yaml.Node) (text, error) {
	t, problem := parsePlain(n.Value)
	if problem != "" {
		return t, p.problem(n, "%s: it %s", id, problem)
	}
	if p.file.embedded {
		return t, nil
	}
	known := p.english.texts[id].names()
	for _, name := range t.names() {
		if !slices.Contains(known, name) {
			return t, p.problem(n, "%s has no placeholder {%s}: expected %s", id, name, listed(known))
		}
	}
	return t, nil
}

func (p *parser) plural(id string, n *yaml.Node) error {
	all := text{forms: map[plural.Form][]segment{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		form, known := forms[n.Content[i].Value]
		if !known || n.Content[i+1].Kind != yaml.ScalarNode {
			return p.problem(n.Content[i], "%s.%s: expected a text for zero, one, two, few, many or other", id,
				n.Content[i].Value)
		}
		t, err := p.plain(id, n.Content[i+1])
		if err != nil {
			return err
		}
		all.forms[form] = t.forms[plural.Other]
	}
	if all.forms[plural.Other] == nil {
		return p.problem(n, "%s lacks the form other", id)
	}
	p.found[id] = all
	return nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "{" + strings.Join(names, "}, {") + "}"
}

// names are the placeholders of a text.
func (t text) names() (all []string) {
	for _, segments := range t.forms {
		for _, s := range segments {
			if s.name != "" && !slices.Contains(all, s.name) {
				all = append(all, s.name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// parsePlain parses a text with placeholders, or says what is wrong with it.
func parsePlain(raw string) (t text, problem string) {
	rest := raw
	var all []segment
	for rest != "" {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			open = len(rest)
		}
		if open > 0 {
			all = append(all, segment{literal: rest[:open]})
		}
		if rest = rest[open:]; rest == "" {
			break
		}
		end := strings.IndexByte(rest, '}')
		if rest[0] == '}' || end < 2 || strings.ContainsAny(rest[1:end], "{ ") {
			return t, "has a brace that is not of a placeholder such as {name}"
		}
		all = append(all, segment{name: rest[1:end]})
		rest = rest[end+1:]
	}
	return text{raw: raw, forms: map[plural.Form][]segment{plural.Other: all}}, ""
}
