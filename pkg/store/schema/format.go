package schema

import (
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// knownFormats returns the formats that can be asserted. Those of internationalized e-mail addresses and host names are
// not among them: the library does not know these.
func knownFormats() []string {
	return []string{
		"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "regex",
		"relative-json-pointer", "time", "uri", "uri-reference", "uri-template", "uuid",
	}
}

// formatRegex is the format of regular expressions. A client can write one that takes seconds and hundreds of megabytes, so
// its length is bounded, and checking one costs more steps than other formats do.
const (
	formatRegex = "regex"
	maxRegex    = 4 << 10 // bytes
	regexCost   = 64      // steps for a byte
)

// formatCost is how many steps it takes to check whether a string has a format.
func formatCost(name string, size int) int {
	if name == formatRegex {
		return size * regexCost
	}
	return size / 16
}

// formatChecks are schemas of the library that assert one format each, by its name.
var formatChecks = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	all := map[string]*jsonschema.Schema{}
	for _, name := range knownFormats() {
		url := "belfry:///" + name
		if err := compiler.AddResource(url, map[string]any{"format": name}); err != nil {
			return nil, err
		}
		compiled, err := compiler.Compile(url)
		if err != nil {
			return nil, err
		}
		all[name] = compiled
	}
	return all, nil
})

// formatOf returns what reports whether a string has a format.
func formatOf(name string) (func(s string) bool, error) {
	if name == formatRegex {
		return func(s string) bool {
			if len(s) > maxRegex {
				return false
			}
			_, err := translatePattern(s)
			return err == nil
		}, nil
	}
	all, err := formatChecks()
	if err != nil {
		return nil, err
	}
	check := all[name]
	if check == nil {
		return nil, fmt.Errorf("the format %q is not known", name)
	}
	return func(s string) bool { return check.Validate(s) == nil }, nil
}
