package computed

import (
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/store/schema"
)

// Properties describe the properties of a store, by its schema and the configuration.
type Properties struct {
	schema *schema.Schema // nil if it is missing or can't be used, which is reported elsewhere
	kept   map[string]bool
	arrays []string // those of mappings and of binary services
}

// PropertiesOf returns the properties of a store. kept are further ones that belfry maintains.
func PropertiesOf(c *config.Config, s *config.Store, kept ...string) *Properties {
	p := &Properties{kept: map[string]bool{}, arrays: MappedArrays(c, s.Name)}
	if data, err := schema.Read(s.Schema); s.Schema != "" && err == nil {
		p.schema, _ = schema.Compile(s.Schema, data)
	}
	for _, b := range c.Binaries {
		p.arrays = append(p.arrays, b.Map[s.Name].Names...)
	}
	for _, name := range slices.Concat([]string{"uuid", "created", "updated"}, s.Reserved, p.arrays, kept) {
		p.kept[name] = true
	}
	if s.Owner != "" {
		p.kept[s.Owner] = true
	}
	for name := range s.Computed {
		p.kept[name] = true
	}
	for name := range s.Copies {
		p.kept[name] = true
	}
	for name := range Aggregates(c, s.Name) {
		p.kept[name] = true
	}
	return p
}

// Compared reports whether names can be compared with those of the schema: there is one, and it names some.
func (p *Properties) Compared() bool { return p.schema != nil && len(p.schema.Names()) > 0 }

// Closed reports whether objects are meant to have no other properties.
func (p *Properties) Closed() bool { return p.schema != nil && p.schema.Closed() }

// Unknown reports whether neither the schema nor belfry has a property. Internal ones are reported elsewhere.
func (p *Properties) Unknown(name string) bool {
	return p.Compared() && !p.kept[name] && !strings.HasPrefix(name, "_") && !p.schema.Knows(name)
}

// Suggest returns advice for an unknown name: similar names.
func (p *Properties) Suggest(name string) string {
	names := slices.DeleteFunc(slices.AppendSeq(p.schema.Names(), maps.Keys(p.kept)), p.Unknown)
	slices.Sort(names)
	if strings.EqualFold(name, "id") { // as most others call it, which no typing error makes of uuid
		return config.Suggest("uuid", names)
	}
	return config.Suggest(name, slices.Compact(names))
}
