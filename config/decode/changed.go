package decode

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"belfry/config/yamltext"
)

// ChangedKeys returns the keys that are not the same in two files, sorted, without their values: of a section that one
// of them does not have the key of the section, of a list that of the list. A key whose value has the content of a file
// is one of them if that content is another.
func ChangedKeys(before, now *Document) []string {
	keys := changedIn("", before.root, now.root, nil)
	for path, content := range now.contents {
		if was, known := before.contents[path]; known && was != content {
			list, _, _ := strings.Cut(path, "[")
			keys = append(keys, list)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func changed(path string, before, now *yaml.Node, keys []string) []string {
	before, now = yamltext.Dealias(before), yamltext.Dealias(now)
	switch {
	case yamltext.IsNull(before) && yamltext.IsNull(now):
		return keys
	case yamltext.IsNull(before) || yamltext.IsNull(now) || before.Kind != now.Kind:
		return append(keys, path)
	case now.Kind == yaml.MappingNode:
		return changedIn(path, before, now, keys)
	case now.Kind == yaml.SequenceNode:
		if !slices.EqualFunc(before.Content, now.Content,
			func(a, b *yaml.Node) bool { return len(changed("x", a, b, nil)) == 0 }) {
			keys = append(keys, path)
		}
		return keys
	case before.Value != now.Value:
		return append(keys, path)
	}
	return keys
}

// changedIn is changed for mappings; a file without content has no mapping and no keys.
func changedIn(path string, before, now *yaml.Node, keys []string) []string {
	was, is := byKey(before), byKey(now)
	for key, node := range is {
		keys = changed(Join(path, key), was[key], node, keys)
	}
	for key, node := range was {
		if is[key] == nil {
			keys = changed(Join(path, key), node, nil, keys)
		}
	}
	return keys
}

// byKey returns the values of a mapping; of nothing, none.
func byKey(n *yaml.Node) map[string]*yaml.Node {
	n = yamltext.Dealias(n)
	if yamltext.IsNull(n) {
		return nil
	}
	all := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		all[n.Content[i].Value] = n.Content[i+1]
	}
	return all
}
