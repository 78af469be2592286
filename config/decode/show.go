package decode

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/config/yamltext"
)

// Shown returns the file as YAML for people, without comments. "[secret]" replaces the values that messages must not
// quote either: of secret or tagged keys, from the environment, and URLs that may have a password.
func (d *Document) Shown() string {
	if d.root == nil {
		return ""
	}
	text, err := yaml.Marshal(d.shown("", d.root))
	if err != nil {
		return "" // it has been read before
	}
	return string(text)
}

// shown returns a copy of a node without secrets.
func (d *Document) shown(path string, n *yaml.Node) *yaml.Node {
	n = yamltext.Dealias(n)
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			out.Content = append(out.Content,
				&yaml.Node{Kind: key.Kind, Style: key.Style, Tag: key.Tag, Value: key.Value},
				d.shown(Join(path, key.Value), n.Content[i+1]))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			out.Content = append(out.Content, d.shown(path+"["+strconv.Itoa(i)+"]", item))
		}
	case yaml.ScalarNode:
		if n.Value != "" && d.hides(path, n.Value) {
			return &yaml.Node{Kind: yaml.ScalarNode, Style: yaml.DoubleQuotedStyle, Value: redacted}
		}
	}
	return out
}

// hides reports whether a value must not be shown: its key is secret, a key above it is marked, or it is a URL that may
// have a password.
func (d *Document) hides(path, text string) bool {
	for at := path; at != ""; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
		if d.secret[at] {
			return true
		}
	}
	return d.isSecret(path) || strings.Contains(text, "://") && strings.Contains(text, "@")
}

// HiddenKeys returns the keys whose values Shown hides, as the keys from the root; of an item of a list, the key of the
// list.
func (d *Document) HiddenKeys() (all [][]string) {
	if d.root != nil {
		d.hidden("", nil, d.root, func(keys []string) { all = append(all, slices.Clone(keys)) })
	}
	return all
}

// hidden calls found for each value in a node that is hidden.
func (d *Document) hidden(path string, keys []string, n *yaml.Node, found func(keys []string)) {
	switch n = yamltext.Dealias(n); n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			d.hidden(Join(path, key), append(slices.Clone(keys), key), n.Content[i+1], found)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			d.hidden(path+"["+strconv.Itoa(i)+"]", keys, item, found)
		}
	case yaml.ScalarNode:
		if n.Value != "" && d.hides(path, n.Value) {
			found(keys)
		}
	}
}
