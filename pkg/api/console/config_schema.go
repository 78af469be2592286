package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/errs"
)

// configSchema is a part of the JSON Schema of the configuration, as a form needs it. The schema of a file also accepts
// references to the environment, short forms, and lists in one text: a form writes neither of the first two, and reads
// the others by expand.
type configSchema struct{ of *ordered.Object }

// newConfigSchema reads the JSON Schema of the configuration.
func newConfigSchema(text []byte) (configSchema, error) {
	v, err := ordered.Value(text)
	root, ok := v.(*ordered.Object)
	if err != nil || !ok {
		return configSchema{}, errs.Wrap(err, errs.Internal, "the schema of the configuration can't be read")
	}
	return configSchema{root}, nil
}

// property returns the schema of a key, or of the entries of a map.
func (s configSchema) property(name string) configSchema {
	of := s.longForm()
	if inner := of.Object("properties").Object(name); inner != nil {
		return configSchema{inner}
	}
	return configSchema{of.Object("additionalProperties")}
}

// names returns the keys that the schema names.
func (s configSchema) names() (all []string) {
	for _, m := range s.longForm().Object("properties").Members() {
		all = append(all, m.Name)
	}
	return all
}

// variants returns the values of the key type that have keys of their own; nil for a section without them.
func (s configSchema) variants() (all []string) {
	for _, one := range alternatives(s.of, "allOf") {
		if kind := variantOf(one); kind != "" && !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}

// variant returns the schema of a section with a value of the key type.
func (s configSchema) variant(kind string) configSchema {
	for _, one := range alternatives(s.of, "allOf") {
		if variantOf(one) == kind {
			return configSchema{one.Object("then")}
		}
	}
	return s
}

func variantOf(one *ordered.Object) string {
	kind, _ := one.Object("if").Object("properties").Object("type").Get("const").(string)
	return kind
}

func alternatives(of *ordered.Object, keyword string) (all []*ordered.Object) {
	list, _ := of.Get(keyword).([]any)
	for _, one := range list {
		if o, ok := one.(*ordered.Object); ok {
			all = append(all, o)
		}
	}
	return all
}

// longForm is the alternative that has all that can be said: keys or a list rather than one text, and choices rather
// than any text.
func (s configSchema) longForm() *ordered.Object {
	all := alternatives(s.of, "anyOf")
	if len(all) == 0 {
		return s.of
	}
	best := all[0]
	for _, one := range all {
		if inner := (configSchema{one}).longForm(); inner != one {
			one = inner
		}
		if rank(one) > rank(best) {
			best = one
		}
	}
	long := best.Clone()
	for _, m := range s.of.Members() {
		if m.Name != "anyOf" && !long.Has(m.Name) {
			long.Set(m.Name, m.Value)
		}
	}
	return long
}

func rank(of *ordered.Object) int {
	switch {
	case hasType(of, "object"), hasType(of, "array"):
		return 3
	case of.Has("enum"):
		return 2
	case of.Has("anyOf"):
		return 1
	default:
		return 0
	}
}

func hasType(of *ordered.Object, name string) bool { return slices.Contains(typeNames(of), name) }

func typeNames(of *ordered.Object) (all []string) {
	switch t := of.Get("type").(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok {
				all = append(all, name)
			}
		}
	}
	return all
}

// word returns the key that a short form stands for: a reference that is the name of a store, for example; "" for none.
func (s configSchema) word() string {
	if len(alternatives(s.of, "anyOf")) == 0 {
		return ""
	}
	long := s.longForm()
	required, _ := long.Get("required").([]any)
	if !hasType(long, "object") || len(required) == 0 {
		return ""
	}
	name, _ := required[0].(string)
	return name
}

// single returns the type of a value that has no parts; "" for any other.
func singleType(long *ordered.Object) string {
	pattern, _ := long.Get("pattern").(string)
	switch {
	case hasType(long, "object"), hasType(long, "array"), long.Has("enum"):
		return ""
	case strings.HasPrefix(pattern, "^(true|false)$"):
		return "boolean"
	case strings.HasPrefix(pattern, `^-?\d+$`):
		return "integer"
	default:
		return "string"
	}
}

// form returns the schema that a form is made of.
func (s configSchema) form() *ordered.Object {
	long := s.longForm()
	out := ordered.Of()
	if text, ok := long.Get("description").(string); ok {
		// The form shows a default itself. Some texts refer to what is below them in the reference.
		if before, _, has := strings.Cut(text, "\nDefault:"); has &&
			(long.Has("default") || strings.HasSuffix(text, "see below")) {
			text = before
		}
		out.Set("description", strings.ReplaceAll(text, "`", ""))
	}
	for _, keyword := range []string{"title", "default", "enum", "required", "maxItems"} {
		if long.Has(keyword) {
			out.Set(keyword, long.Get(keyword))
		}
	}
	switch kind := singleType(long); {
	case kind != "":
		out.Set("type", kind)
		if media := long.Get("contentMediaType"); media != nil {
			out.Set("contentMediaType", media)
		}
		for _, bound := range []string{"minimum", "maximum"} {
			if kind == "integer" && long.Has(bound) {
				out.Set(bound, long.Get(bound))
			}
		}
	case hasType(long, "object"):
		out.Set("type", "object")
	case hasType(long, "array"):
		out.Set("type", "array")
	}
	if properties := long.Object("properties"); properties.Len() > 0 {
		all := ordered.Of()
		for _, m := range properties.Members() {
			all.Set(m.Name, configSchema{properties.Object(m.Name)}.form())
		}
		out.Set("properties", all)
	}
	for _, keyword := range []string{"additionalProperties", "items"} {
		if inner := long.Object(keyword); inner != nil {
			out.Set(keyword, configSchema{inner}.form())
		} else if long.Has(keyword) {
			out.Set(keyword, long.Get(keyword))
		}
	}
	return out
}

// expand returns a value of a file in its long form.
func (s configSchema) expand(v any) any {
	long := s.longForm()
	text, single := v.(string)
	switch {
	case single && s.word() != "":
		return ordered.Of(s.word(), text)
	case single && hasType(long, "array"):
		list := []any{}
		for _, one := range strings.Split(text, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		return list
	}
	switch v := v.(type) {
	case json.Number, bool, string:
		return ofKind(singleType(long), v)
	case *ordered.Object:
		out := ordered.Of()
		for _, m := range v.Members() {
			out.Set(m.Name, s.property(m.Name).expand(m.Value))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = configSchema{long.Object("items")}.expand(one)
		}
		return out
	case nil:
		if hasType(long, "object") {
			return ordered.Of() // a key without a value
		}
	}
	return v
}

// ofKind returns a single value as the input of a form has it: a file may have a number in quotes, or none.
func ofKind(kind string, v any) any {
	text := fmt.Sprint(v)
	switch {
	case kind == "string":
		return text
	case kind == "boolean" && (text == "true" || text == "false"):
		return text == "true"
	case kind == "integer" && isInteger(text):
		return json.Number(text)
	default:
		return v
	}
}

func isInteger(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil && json.Valid([]byte(text))
}

// shorten returns a value of a form as the file has it: as it was if it says the same, and in the short form if there
// is one.
func (s configSchema) shorten(v, before any) any {
	if before != nil && sameJSON(s.expand(before), v) {
		return before
	}
	switch v := v.(type) {
	case *ordered.Object:
		if _, long := before.(*ordered.Object); !long && s.word() != "" && v.Len() == 1 && v.Has(s.word()) {
			return v.Get(s.word())
		}
		was, _ := before.(*ordered.Object)
		out := ordered.Of()
		for _, m := range v.Members() {
			out.Set(m.Name, s.property(m.Name).shorten(m.Value, was.Get(m.Name)))
		}
		return out
	case []any:
		was, _ := before.([]any)
		out := make([]any, len(v))
		for i, one := range v {
			var old any
			if i < len(was) {
				old = was[i]
			}
			out[i] = configSchema{s.longForm().Object("items")}.shorten(one, old)
		}
		return out
	}
	return v
}

// sameJSON compares values without the order of members.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case *ordered.Object:
		b, ok := b.(*ordered.Object)
		if !ok || a.Len() != b.Len() {
			return false
		}
		return !slices.ContainsFunc(a.Members(), func(m ordered.Member) bool {
			return !b.Has(m.Name) || !sameJSON(m.Value, b.Get(m.Name))
		})
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameJSON)
	default:
		return a == b
	}
}
