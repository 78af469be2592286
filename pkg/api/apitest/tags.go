package apitest

import "strings"

// Coded returns what proxies that compress replies make of an entity tag: those that stay strong.
func Coded(tag string) []string {
	value := strings.Trim(tag, `"`)
	var all []string
	for _, coding := range []string{"-gzip", "--gzip", "-br", "-zstd", "-deflate"} {
		all = append(all, `"`+value+coding+`"`)
	}
	return all
}

// Weakened returns what proxies that compress replies make of an entity tag: those that are weak then.
func Weakened(tag string) []string { return []string{"W/" + tag, "W/" + Coded(tag)[0]} }
