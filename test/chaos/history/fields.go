package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Fields are the fields that clients set, each as JSON.
type Fields map[string]string

// owned are the fields that clients set.
var owned = []string{"title", "value", "note", "parent", "parents", "child", "register", "shelf"}

// FieldsOf returns the fields of an object that clients set.
func FieldsOf(body []byte) Fields {
	all := decode(body)
	f := Fields{}
	for _, name := range owned {
		if value, ok := all[name]; ok {
			f[name] = string(value)
		}
	}
	return f
}

func decode(body []byte) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil || json.Unmarshal(compact.Bytes(), &all) != nil {
		return nil
	}
	return all
}

// Merge returns the fields after a write that sends others.
func (f Fields) Merge(kind Kind, sent Fields) Fields {
	if kind == Create {
		return sent
	}
	next := maps.Clone(f)
	if next == nil {
		next = Fields{}
	}
	for name, value := range sent {
		if (kind == Patch || kind == Clear) && value == "null" {
			delete(next, name)
		} else {
			next[name] = value
		}
	}
	return next
}

// String is the same for equal fields.
func (f Fields) String() string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(f)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, f[name])
	}
	return "{" + b.String() + "}"
}

// Text returns a field that is a string, or "".
func (f Fields) Text(name string) string {
	var s string
	if json.Unmarshal([]byte(f[name]), &s) != nil {
		return ""
	}
	return s
}

// Targets returns the uuids that a key names, which is one uuid or an array of them.
func Targets(body []byte, key string) []string {
	value := decode(body)[key]
	var one string
	if json.Unmarshal(value, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(value, &many) != nil {
		return nil
	}
	slices.Sort(many)
	return slices.Compact(many)
}

// Entry is one copy in an array of a target.
type Entry struct {
	UUID, Title string
	JSON        string
}

// Entries returns the copies that an object has in an array. It fails when the property is no array of
// copies.
func Entries(body []byte, array string) ([]Entry, error) {
	value, ok := decode(body)[array]
	if !ok {
		return nil, nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(value, &raw); err != nil {
		return nil, fmt.Errorf("%s is no array: %s", array, value)
	}
	var entries []Entry
	for _, r := range raw {
		e := Entry{JSON: string(r)}
		if err := json.Unmarshal(r, &e); err != nil || e.UUID == "" {
			return nil, fmt.Errorf("%s has an entry without a uuid: %s", array, r)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// UnmarshalJSON reads what identifies an entry.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var identity struct{ UUID, Title string }
	err := json.Unmarshal(data, &identity)
	e.UUID, e.Title, e.JSON = identity.UUID, identity.Title, string(data)
	return err
}

// Project computes the entry that a target must have for an object.
func Project(uuid string, body []byte, fields []string) string {
	all := decode(body)
	id, err := json.Marshal(uuid)
	if err != nil {
		return ""
	}
	b := fmt.Appendf(nil, `{"uuid":%s`, id)
	for _, name := range fields {
		if value, ok := all[name]; ok {
			b = fmt.Appendf(b, ",%q:%s", name, value)
		}
	}
	return string(append(b, '}'))
}

// Value returns the JSON of a property; "" when the object does not have it.
func Value(body []byte, name string) string { return string(decode(body)[name]) }

// Text returns a property that is a string, or "".
func Text(body []byte, name string) string { return Fields{name: Value(body, name)}.Text(name) }

// Micros returns a time of an object, created or updated, in microseconds, so that it compares with
// revisions; 0 when the object has none.
func Micros(body []byte, field string) uint64 {
	var text string
	if json.Unmarshal(decode(body)[field], &text) != nil {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0
	}
	return uint64(t.UnixMicro())
}

// Record is what an object says of one of its files.
type Record struct {
	Hash string
	Size int64
}

// Files returns the files of an object.
func Files(body []byte, property string) []Record {
	var records []Record
	_ = json.Unmarshal(decode(body)[property], &records)
	return records
}

// Same reports whether two objects are equal as JSON, with their fields in the same order or not.
func Same(a, b []byte) bool {
	x, y := decode(a), decode(b)
	if len(x) != len(y) || (x == nil) != (y == nil) {
		return false
	}
	for name, value := range x {
		if !bytes.Equal(value, y[name]) {
			return false
		}
	}
	return true
}
