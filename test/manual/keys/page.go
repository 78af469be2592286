package keys

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/test/manual/docpages"
)

// Page returns docs/reference/configuration.md.
func (f *File) Page() ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Configuration\n\n<!-- Made of test/manual/keys/keys.yaml by `make schema`: change that file. -->\n\n")
	b.WriteString(strings.TrimSpace(f.Introduction) + "\n\n")
	for _, s := range f.Sections {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", s.Title, docpages.Anchor(s.Title), s.Summary)
	}
	for _, s := range f.Sections {
		fmt.Fprintf(&b, "\n## %s\n", s.Title)
		if s.Text != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(s.Text))
		}
		if len(s.Keys) > 0 {
			if err := f.table(&b, s); err != nil {
				return nil, err
			}
		}
		if s.After != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(s.After))
		}
	}
	return []byte(b.String()), nil
}

func (f *File) table(b *strings.Builder, s *Section) error {
	typed := false
	for _, k := range s.Keys {
		typed = typed || k.For != ""
	}
	header := "\n| key | type | default | meaning |\n|---|---|---|---|\n"
	if typed {
		header = "\n| if `type` is | key | type | default | meaning |\n|---|---|---|---|---|\n"
	}
	b.WriteString(header)
	for _, k := range s.Keys {
		meaning := k.Meaning
		if k.Example.Kind != 0 && k.Type.Text != "boolean" && k.Type.Values == nil { // other examples say nothing that the type does not
			example, err := flow(&k.Example)
			if err != nil {
				return fmt.Errorf("%s: %w", k.Path, err)
			}
			meaning += " Example: `" + example + "`"
		}
		if k.Since != "" {
			meaning += ". Since " + k.Since
		}
		cells := []string{"`" + strings.ReplaceAll(k.Name, "*", "<name>") + "`", k.Type.String(), k.initial(), meaning}
		if typed {
			of := " "
			if k.For != "" {
				of = "`" + k.For + "`"
			}
			cells = append([]string{of}, cells...)
		}
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		b.WriteString("|" + strings.Join(cells, "| ") + "|\n")
	}
	return nil
}

// flow writes an example in one line, as it is quoted in the file.
func flow(n *yaml.Node) (string, error) {
	copied := *n
	if n.Kind != yaml.ScalarNode {
		copied.Style = yaml.FlowStyle
	}
	text, err := yaml.Marshal(&copied)
	if err != nil {
		return "", err
	}
	line := strings.TrimSuffix(string(text), "\n")
	if strings.Contains(line, "\n") {
		return "", fmt.Errorf("the example has several lines: %s", line)
	}
	return line, nil
}
