package console

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Bounds of the columns of a list.
const (
	maxColumns = 4  // that are shown unless others are chosen
	maxShown   = 20 // that can be shown
	maxOffered = 60 // that the page offers
	maxCell    = 80 // bytes of a value that are shown
	maxInPlace = 400
)

// gridColumn is a column of a list.
type gridColumn struct {
	Name     string
	Ordered  string // how the list is ordered by it now: ascending, descending; "" for not by it
	Sort     string // URL of the list in the order of the column, or in the reverse one; "" without an index
	IndexURL string // where an index for it is added; "" for nowhere
	Editable bool   // its values can be changed in place
	Kind     string // of its values, as the schema declares them; "" if it does not
	Facts    fieldFacts
}

// gridCell is a value as a list shows it.
type gridCell struct {
	Field, Kind string // number, boolean, time, text, JSON, names, picture; "" without a value
	Text        string
	True        bool
	At          string // of a time: in RFC 3339
	Names       []named
	More        int    // objects that it names besides, or files that it has besides
	Preview     string // path of a picture
	Edit        string // what kind of value can be entered in place: number, boolean, string; "" for none
	Value       string // of a cell that can be edited: as JSON
}

// objects implements showsObjects.
func (row gridRow) objects() (all []*named) {
	for i := range row.Cells {
		all = append(all, pointers(row.Cells[i].Names)...)
	}
	return all
}

// gridRow is a row of a list.
type gridRow struct {
	named
	Revision    uint64
	Fixed, Bulk bool // it can't be changed; several can be at once
	Cells       []gridCell
}

// offered returns the fields that a list can show as columns: those of indexes, then those that the schema declares,
// and then those of the objects of the page: at most so many.
func offered(info StoreInfo, st *store.Store, rows []store.Stored, most int) (names []string) {
	add := func(name string) {
		if len(names) < most && canBeColumn(st, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, fields := range info.Indexes {
		for _, name := range fields {
			add(bareField(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(typesOf(st))) {
		add(name)
	}
	for _, row := range rows {
		_ = object.Each(row.Body, func(name string, _ []byte) bool {
			add(name)
			return len(names) < most
		})
	}
	add("created")
	add("updated")
	return names
}

// canBeColumn reports whether a list can show a field. A name with hidden characters could pass for another one.
func canBeColumn(st *store.Store, name string) bool {
	return name != "" && name != "uuid" && len(name) <= maxCell && legible(name) == name &&
		!st.Rules().Hidden(topLevel(name))
}

// bareField returns the field that an index names, without a direction and elements.
func bareField(name string) string { return strings.TrimSuffix(strings.TrimPrefix(name, "-"), "[]") }

// topLevel returns the field of the object that a field is in.
func topLevel(name string) string {
	top, _, _ := strings.Cut(name, ".")
	return top
}

// usual returns the columns of a list for which none are chosen: the fields of the indexes, then others whose values
// are no objects and no arrays, in the order of the objects, and the time of the last change.
func usual(info StoreInfo, st *store.Store, rows []store.Stored) (names []string) {
	add := func(name string) {
		if len(names) < maxColumns && canBeColumn(st, name) && !slices.Contains(names, name) &&
			name != "created" && name != "updated" {
			names = append(names, name)
		}
	}
	for _, fields := range info.Indexes {
		for _, name := range fields {
			add(bareField(name))
		}
	}
	for _, row := range rows {
		_ = object.Each(row.Body, func(name string, value []byte) bool {
			if value[0] != '{' && value[0] != '[' {
				add(name)
			}
			return len(names) < maxColumns
		})
	}
	return append(names, "updated")
}

// chosenColumns returns the columns that a request names, nil for none. Those that can't be columns are left out.
func chosenColumns(st *store.Store, asked []string) (names []string) {
	for _, name := range asked {
		if len(names) < maxShown && canBeColumn(st, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// cellEditor knows how fields of objects of a store are shown, and which can be changed in place.
type cellEditor struct {
	st     *store.Store
	info   StoreInfo
	types  map[string]string
	facts  map[string]fieldFacts
	copied map[string]bool
	refers map[string]string // the store that a reference names objects of, by its field
	files  map[string]bool   // fields that have files
	names  *namer
}

func (v *objectsView) cellEditor(info StoreInfo, st *store.Store) cellEditor {
	e := cellEditor{st: st, info: info, types: typesOf(st), facts: v.facts(info.Name, st), copied: map[string]bool{},
		refers: map[string]string{}, files: map[string]bool{}, names: v.names}
	for _, r := range st.References() {
		e.refers[r.Field] = r.Target
	}
	for _, c := range st.Copies() {
		e.copied[c.Field] = true
	}
	for _, service := range v.files {
		for _, property := range service.Properties(info.Name) {
			e.files[property] = true
		}
	}
	return e
}

// may reports whether a field can be changed in place: one of the object itself that belfry neither keeps nor computes.
func (e cellEditor) may(name string) bool {
	if e.info.Fixed || e.files[name] || name == "uuid" || e.copied[name] ||
		slices.Contains(e.st.ComputedFields(), name) {
		return false
	}
	switch e.types[name] {
	case "array", "object", "null":
		return false
	}
	return len(e.st.Rules().SettableByInterceptor(object.Object{name: []byte(`""`)})) > 0
}

// kind returns which kind of value can be entered for one in place; "" for none. One that is not of the declared kind
// is corrected elsewhere, and so is a text of several lines, since an input would change either by itself.
func (e cellEditor) kind(name string, value json.RawMessage) string {
	declared := e.types[name]
	if declared == "integer" {
		declared = "number"
	}
	if len(value) == 0 {
		return declared
	}
	var found string
	switch c := value[0]; {
	case c == '"':
		if text, _ := object.Text(value); strings.ContainsAny(text, "\r\n") {
			return ""
		}
		found = "string"
	case c == 't' || c == 'f':
		found = "boolean"
	case c == '-' || c >= '0' && c <= '9':
		found = "number"
	default:
		return ""
	}
	if declared != "" && declared != found {
		return ""
	}
	return found
}

// cells returns the values of an object for columns.
func (e cellEditor) cells(o store.Stored, columns []string) []gridCell {
	cells := make([]gridCell, len(columns))
	for i, name := range columns {
		value := valueAt(o.Body, name)
		cells[i] = cellOf(name, value)
		if target, ok := e.refers[name]; ok {
			cells[i].name(e.names, target, value)
		}
		if e.files[name] {
			cells[i].picture(e.info.Name, o.UUID, value)
		}
		// A name with a dot may be of a field in another one.
		if len(value) <= maxInPlace && !strings.Contains(name, ".") && e.may(name) {
			if cells[i].Edit = e.kind(name, value); cells[i].Edit != "" {
				cells[i].Value = legible(string(value)) // in a text of JSON the escapes mean the same
			}
		}
	}
	return cells
}

// maxCellNames is how many objects that a reference names a cell shows.
const maxCellNames = 3

// name shows the objects that the value of a reference names.
func (c *gridCell) name(names *namer, target string, value json.RawMessage) {
	uuids := store.KeyTargets(value)
	if len(uuids) == 0 {
		return
	}
	shown := uuids[:min(len(uuids), maxCellNames)]
	c.Kind, c.Names, c.More = "names", names.all(target, shown), len(uuids)-len(shown)
}

// cellOf returns a value as a list shows it. The digits of a number stay as they are.
func cellOf(name string, value json.RawMessage) gridCell {
	c := gridCell{Field: name}
	if len(value) == 0 {
		return c
	}
	if text, ok := object.Text(value); ok {
		c.Kind, c.Text = "text", shorten(text, maxCell)
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			c.Kind, c.Text, c.At = "time", formatTime(at), at.UTC().Format(time.RFC3339Nano)
		}
		return c
	}
	c.Text = shorten(string(value), maxCell)
	switch value[0] {
	case 't', 'f':
		c.Kind, c.True = "boolean", value[0] == 't'
	case '{', '[', 'n':
		c.Kind = "JSON"
	default:
		c.Kind = "number"
	}
	return c
}
