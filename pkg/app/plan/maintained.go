package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"belfry/config"
	"belfry/config/value"
	"belfry/pkg/computed"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/schema"
)

// maintained returns the values that belfry writes into the properties of a store that it maintains, by name.
func maintained(c *config.Config, s *config.Store, types *policy.Computed) map[string]schema.Written {
	text := func(what string) schema.Written { return schema.Written{What: what, Type: "string"} }
	all := map[string]schema.Written{
		"created": text("the time that belfry sets"), "updated": text("the time that belfry sets"),
	}
	if s.Owner != "" {
		all[s.Owner] = text("the uuid of the owner")
	}
	for _, name := range s.Reserved {
		all[name] = schema.Written{What: "what belfry sets", Type: "boolean", Values: []string{"true", "false"}}
	}
	for _, name := range types.Names() {
		all[name] = schema.Written{What: "the computed value", Type: types.Type(name), Open: true}
	}
	for _, name := range computed.MappedArrays(c, s.Name) {
		all[name] = schema.Written{What: "the mapped array", Type: "array", Items: &schema.Written{
			What: "an entry of it", Type: "object",
			Members: map[string]schema.Written{"uuid": text("the uuid of the copied object")},
		}}
	}
	for name := range s.Copies {
		all[name] = schema.Written{What: "the copied value", Open: true}
	}
	for name, function := range computed.Aggregates(c, s.Name) {
		written := schema.Written{What: "the aggregate", Open: true}
		if function, _ := value.Aggregate(function); function == "count" || function == "sum" {
			written.Type = "number"
		}
		all[name] = written
	}
	for _, b := range c.Binaries {
		for _, name := range b.Map[s.Name].Names {
			all[name] = fileRecords()
		}
	}
	if s.Name == c.Authentication.UserStore {
		all["password"] = text("the hash of the password")
	}
	for _, name := range maintainedFields(c, s.Name) {
		if all[name].What == "" {
			all[name] = schema.Written{What: "what a login writes", Open: true}
		}
	}
	return all
}

func fileRecords() schema.Written {
	members := map[string]schema.Written{
		"size":     {What: "the size of a file", Type: "integer"},
		"metadata": {What: "the metadata of a file", Type: "object"},
	}
	for _, name := range []string{"hash", "name", "mimetype", "created"} {
		members[name] = schema.Written{What: "the " + name + " of a file", Type: "string"}
	}
	return schema.Written{What: "the property, which holds files,", Type: "array",
		Items: &schema.Written{What: "the record of a file", Type: "object", Members: members}}
}

// checkMaintained refuses a schema that rejects every object, or that contradicts the values that belfry maintains.
// Schemas do not validate these values, but the author of such a schema expects them to do so.
func (p *Plan) checkMaintained(s *config.Store, compiled *schema.Schema,
	types *policy.Computed) (problems config.Problems) {
	add := func(err error) {
		if err != nil {
			problems = append(problems, p.Config.Problem("stores."+s.Name+".schema", "%v", err))
		}
	}
	all := maintained(p.Config, s, types)
	add(compiled.RefusesObjects(func(name string) bool {
		return name == "uuid" || strings.HasPrefix(name, "_") || all[name].What != ""
	}))
	add(compiled.Contradictions("uuid", schema.Written{What: "a uuid", Type: "string", Open: true, Judged: true}))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(compiled.Contradictions(name, all[name]))
	}
	return problems
}

// Unjudged returns the places in which schemas limit owners and files, which they do not validate.
func Unjudged(c *config.Config) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[name]
		compiled, err := LoadSchema(s)
		if compiled == nil || err != nil {
			continue
		}
		var kept []string
		if s.Owner != "" {
			kept = append(kept, s.Owner)
		}
		for _, service := range slices.Sorted(maps.Keys(c.Binaries)) {
			kept = append(kept, c.Binaries[service].Map[name].Names...)
		}
		slices.Sort(kept)
		for _, property := range slices.Compact(kept) { // two services may have the same property
			if limits := compiled.Limits(property); len(limits) > 0 {
				all = append(all,
					fmt.Sprintf("stores.%s.schema: %s is maintained by belfry, so %s in %s can't limit it: remove this",
						name, property, strings.Join(limits, ", "), s.Schema))
			}
		}
	}
	return all
}

// RefusedUUIDs returns the stores whose schemas refuse the uuids that belfry makes, if clients can't choose others.
func RefusedUUIDs(c *config.Config) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[name]
		compiled, err := LoadSchema(s)
		if compiled == nil || err != nil || !s.ServerUUIDs() {
			continue
		}
		made := object.Object{"uuid": object.AppendString(nil, object.NewUUID())}
		var found *errs.Error
		if !errors.As(compiled.ValidatePart(context.Background(), made.Encode(), func(string) bool { return true }),
			&found) {
			continue
		}
		for _, f := range found.Fields {
			if f.Pointer == "/uuid" {
				all = append(all,
					fmt.Sprintf("stores.%s.schema: clients can't create objects: the server makes their uuids, such "+
						"as %s, which %s refuses: %s. Remove that, or set uuid: client",
						name, made["uuid"], s.Schema, f.Message))
				break
			}
		}
	}
	return all
}
