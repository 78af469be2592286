package config

import (
	"errors"
	"slices"
)

// The schema of the configuration is made by the functions that read it. With a recorder they read nothing: each key
// that they ask for is recorded, with what its parser expects. So a key that can be read is in the schema, and no other.

// anyKey stands for the keys that are chosen by who writes the configuration, such as names of stores.
const anyKey = "Any"

// expectation is the error of a parser: what it expects, for people and for a schema.
type expectation struct {
	text   string
	schema fragment
	path   bool // the value is the path of a file or a folder
}

func (e *expectation) Error() string { return e.text }

// expected is the error of a parser that expects something. A schema can be nil.
func expected(what string, schema fragment) error {
	return &expectation{text: "expected " + what, schema: schema}
}

// fragment is a part of a JSON Schema.
type fragment map[string]any

// recorder holds what was asked for, by paths. Lists have items at their path and "[]".
type recorder struct {
	sections map[string]map[string]*keys // by path, and by the value of the key type; "" where there is none
	values   map[string]value
	lists    map[string]bool
	words    map[string]bool     // lists that can be comma-separated texts
	choices  map[string][]string // where reading depends on a value
	defaults map[string]string   // of these
	turn     int                 // which of the choices is taken
}

// keys are those that were asked for in a section, and those that are required.
type keys struct{ all, required []string }

// value is a single value: what its parser expects, and its default.
type value struct {
	zero     any
	expected []*expectation
}

func newRecorder() *recorder {
	return &recorder{
		sections: map[string]map[string]*keys{}, values: map[string]value{}, lists: map[string]bool{}, words: map[string]bool{},
		choices: map[string][]string{}, defaults: map[string]string{},
	}
}

// section records that a section is read.
func (r *recorder) section(path string) *keys {
	if r.sections[path] == nil {
		r.sections[path] = map[string]*keys{}
	}
	variant := ""
	if choices := r.choices[join(path, "type")]; choices != nil {
		variant = r.choose(join(path, "type"), choices...)
	}
	if r.sections[path][variant] == nil {
		r.sections[path][variant] = &keys{}
	}
	return r.sections[path][variant]
}

// key records a key of a section. It does nothing without a recorder.
func (r *recorder) key(path, key string) {
	if r == nil {
		return
	}
	if k := r.section(path); !slices.Contains(k.all, key) {
		k.all = append(k.all, key)
	}
}

func (r *recorder) require(path, key string) {
	if k := r.section(path); !slices.Contains(k.required, key) {
		k.required = append(k.required, key)
	}
}

// list records a list and returns the path of its items.
func (r *recorder) list(path string) string {
	r.lists[path] = true
	return path + "[]"
}

// choose returns the choice of this turn.
func (r *recorder) choose(path string, choices ...string) string {
	r.choices[path] = choices
	return choices[min(r.turn, len(choices)-1)]
}

// recordValue records a single value of a section. The result is the choice of this turn, if the value is one of several.
func recordValue[T any](r *recorder, path, key string, initial T, parse func(string) (T, error)) string {
	v := valueOf(initial, parse)
	chosen := ""
	if choices := v.choices(); key == "type" && len(choices) > 0 {
		if text, ok := any(initial).(string); ok && r.defaults[join(path, key)] == "" {
			r.defaults[join(path, key)] = text
		}
		chosen = r.choose(join(path, key), choices...)
	}
	r.key(path, key)
	r.values[join(path, key)] = v
	return chosen
}

// valueOf asks a parser what it expects, by texts that are wrong for most.
func valueOf[T any](initial T, parse func(string) (T, error)) value {
	v := value{zero: initial}
	for _, wrong := range [...]string{"\x00", ""} {
		_, err := parse(wrong)
		var e *expectation
		if errors.As(err, &e) {
			v.expected = append(v.expected, e)
		}
	}
	return v
}

// choices are the values that a key can have, if there are few.
func (v value) choices() []string {
	for _, e := range v.expected {
		if all, ok := e.schema["enum"].([]string); ok {
			return all
		}
	}
	return nil
}

// keysOr returns the keys of a section; while the schema is made, those that have a meaning of their own, and any other.
func (s *section) keysOr(known []string) []string {
	if s.doc.recorder != nil {
		return append(slices.Clone(known), anyKey)
	}
	return s.keys
}
