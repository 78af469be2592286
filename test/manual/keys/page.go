package keys

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/test/manual/docpages"
)

// reloads is the title of the section about reloads.
const reloads = "Keys that a reload refuses"

// Page returns docs/reference/configuration.md. policyOf returns the tag reload of a key.
func (f *File) Page(policyOf func(path string) string) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Configuration\n\n<!-- Made of test/manual/keys/keys.yaml by `make schema`: change that " +
		"file. -->\n\n")
	b.WriteString(strings.TrimSpace(f.Introduction) + "\n\n")
	for _, s := range f.Sections {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", s.Title, docpages.Anchor(s.Title), s.Summary)
	}
	fmt.Fprintf(&b, "- [%s](#%s)\n", reloads, docpages.Anchor(reloads))
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
	err := f.reloadTable(&b, policyOf)
	return []byte(b.String()), err
}

// reloadTable writes which keys a reload does not change, or not always.
func (f *File) reloadTable(b *strings.Builder, policyOf func(path string) string) error {
	by := map[string][]string{}
	var policies []string
	add := func(path, example string) {
		policy := policyOf(example)
		if policy == "live" {
			return
		}
		if by[policy] == nil {
			policies = append(policies, policy)
		}
		by[policy] = append(by[policy], "`"+strings.ReplaceAll(path, "*", "<name>")+"`")
	}
	for _, s := range f.Sections {
		if s.At != nil && strings.HasSuffix(*s.At, ".*") {
			add(*s.At, *s.At)
		}
		for _, k := range s.Keys {
			add(k.Path, k.at(s))
		}
	}
	fmt.Fprintf(b, "\n## %s\n\nA [reload](../guides/configure.md#reload-without-a-restart) applies all other "+
		"keys.\n\n| keys | a change |\n|---|---|\n", reloads)
	for _, policy := range policies {
		if f.Reload[policy] == "" {
			return fmt.Errorf("reload has no text about keys that are %q, such as %s", policy, by[policy][0])
		}
		fmt.Fprintf(b, "|%s| %s |\n", strings.Join(by[policy], ", "), f.Reload[policy])
	}
	for policy := range f.Reload {
		if by[policy] == nil {
			return fmt.Errorf("reload has a text about keys that are %q, and there are none", policy)
		}
	}
	return nil
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
		// Other examples say nothing that the type does not.
		if k.Example.Kind != 0 && k.Type.Text != "boolean" && k.Type.Values == nil {
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
