package console

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"belfry/internal/count"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Bounds of the objects that the page of a store looks into, which are of one page of the backend, and of the fields
// that it shows without the configuration naming them.
const (
	sampleSize    = 50
	sampleBytes   = 1 << 20
	maxOtherNames = 100

	maxConstraint  = 120 // bytes that are shown of each
	maxDescription = 600
)

// modelFields is the section of the fields: those of the configuration, and those that objects have.
type modelFields struct {
	Schema  bool
	All     []modelField
	Sampled int    // objects that were read
	More    int    // fields that are not shown
	Problem string // why none could be read; "": they were
}

type modelField struct {
	ModelField
	Hidden  bool // its values never leave the server
	Has     int  // objects of the sample that have it
	Unnamed bool // the schema does not name it
	Kept    bool // belfry sets it in each object
}

// Share is how many of the objects have the field, in words.
func (f modelField) Share(sampled int) string {
	return formatCount(int64(f.Has)) + " of " + formatCount(int64(sampled))
}

// fieldsOf returns the fields of a store, with how many of the newest objects have each. Of the objects only names and
// types are used.
func fieldsOf(ctx context.Context, r *request, s *ModelStore, st *store.Store) modelFields {
	out := modelFields{Schema: s.Schema}
	page, err := st.Driver().ScanBackward(ctx, nil, sampleSize)
	if err != nil {
		r.RecordError(err)
		out.Problem, _ = messageOf(err)
	}
	bytes := 0
	have, types := map[string]int{}, map[string]map[string]bool{}
	for _, o := range page.Records {
		if bytes += len(o.Body); bytes > sampleBytes && out.Sampled > 0 {
			break
		}
		out.Sampled++
		_ = object.Each(o.Body, func(name string, value []byte) bool {
			have[name]++
			if types[name] == nil {
				types[name] = map[string]bool{}
			}
			types[name][jsonType(value)] = true
			return true
		})
	}
	for _, f := range s.Fields {
		hidden := st.Rules().Hidden(f.Name)
		one := modelField{ModelField: f, Hidden: hidden, Has: have[f.Name]}
		one.Default, one.Description = shorten(one.Default, maxConstraint), shorten(one.Description, maxDescription)
		one.Constraints = nil
		for _, text := range f.Constraints {
			one.Constraints = append(one.Constraints, shorten(text, maxConstraint))
		}
		if one.Type == "" && !hidden {
			one.Type = observedTypes(types[f.Name])
		}
		out.All = append(out.All, one)
		delete(have, f.Name)
	}
	others := slices.SortedFunc(maps.Keys(have),
		func(a, b string) int { return cmp.Or(have[b]-have[a], cmp.Compare(a, b)) })
	for _, name := range others {
		if st.Rules().Hidden(name) {
			continue
		}
		if len(out.All) == len(s.Fields)+maxOtherNames {
			out.More++
			continue
		}
		f := modelField{Has: have[name], Kept: isKept(name)}
		f.Unnamed = s.Schema && !f.Kept
		f.Name, f.Type = shorten(name, maxConstraint), observedTypes(types[name])
		out.All = append(out.All, f)
	}
	return out
}

// isKept reports whether a field is one of those that each object has.
func isKept(name string) bool { return name == "uuid" || name == "created" || name == "updated" }

// MoreText says how many fields are not shown.
func (f modelFields) MoreText() string { return count.Of(f.More, "more field") }

// jsonType returns the type of a value, as schemas name it.
func jsonType(value []byte) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func observedTypes(types map[string]bool) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if text != "" {
			text += " or "
		}
		text += name
	}
	return text
}
