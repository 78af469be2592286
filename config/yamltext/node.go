package yamltext

import "go.yaml.in/yaml/v3"

// Dealias returns the node that an alias stands for; other nodes, and nil, are their own.
func Dealias(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// IsNull reports whether a node is absent, or has no value.
func IsNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}
