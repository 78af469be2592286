package plan

import (
	"belfry/config"
	"belfry/config/value"
	"belfry/pkg/account/record"
	"belfry/pkg/computed"
	"belfry/pkg/store"
	"belfry/pkg/store/schema"
)

// LoadSchema loads the configured schema of a store; nil for none.
func LoadSchema(s *config.Store) (*schema.Schema, error) {
	if s.Schema == "" {
		return nil, nil
	}
	return schema.Load(s.Schema, SchemaOptions(s.Defaults, s.Formats)...)
}

// Judge returns a validator that validates objects as a store would, with the schema and the configuration of its
// properties.
func Judge(c *config.Config, name string) (store.Validator, error) {
	s := c.Stores[name]
	if s == nil {
		return nil, UnknownStore(c, name)
	}
	p := &Plan{Config: c, Open: map[string][]string{}, Titles: map[string][]string{}}
	o, problems := p.compileStore(s)
	if len(problems) > 0 {
		return nil, problems
	}
	o.Arrays = computed.MappedArrays(c, name)
	p.Stores = []store.Options{o}
	p.placeBinaries()
	return store.InputValidator(p.Stores[0]), nil
}

// titleOf returns the properties whose first text names an object of a store to people: those of the configuration, or
// else the first string that the schema requires and that is for people.
func titleOf(s *config.Store, compiled *schema.Schema) []string {
	if len(s.Title) > 0 || compiled == nil {
		return s.Title
	}
	for _, name := range compiled.Texts() {
		_, refers := s.References[name]
		for _, m := range s.Map {
			refers = refers || m.Key == name
		}
		set, _ := value.OwnProperty(name)
		if !refers && name != s.Owner && !s.NeverRead(name) && set != "" {
			return []string{name}
		}
	}
	return nil
}

// maintainedFields returns the properties that logins maintain in a store.
func maintainedFields(c *config.Config, name string) []string {
	users, idents := record.MaintainedFields()
	switch name {
	case c.Authentication.UserStore:
		return users
	case c.Authentication.IdentStore:
		return idents
	default:
		return nil
	}
}

// SchemaOptions are the options by which a schema is compiled.
func SchemaOptions(defaults, formats bool) []schema.Option {
	var all []schema.Option
	if defaults {
		all = append(all, schema.Defaults)
	}
	if formats {
		all = append(all, schema.Formats)
	}
	return all
}
