package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Meta is the common part of all records.
type Meta struct {
	store.Stored        // as it was read
	Created      string // when; "" of a record that is not stored yet
	Updated      string

	events  []store.ExtraEvent
	written []string
	removed []string
	cleared bool
}

func (m *Meta) meta() *Meta { return m }

func (*Meta) owner() string { return "" }

// Publish adds an event to the write of the record.
func (m *Meta) Publish(events ...store.ExtraEvent) { m.events = append(m.events, events...) }

// Write forces the write of an unchanged field, even of an empty list or map.
func (m *Meta) Write(name string) { m.written = append(m.written, name) }

// Clear removes all fields of the stored record that are not set afterwards.
func (m *Meta) Clear() {
	*m = Meta{Stored: m.Stored, Created: m.Created, Updated: m.Updated, cleared: true}
}

// pointer is a pointer to a type of records.
type pointer[T any] interface {
	*T
	meta() *Meta
	owner() string // the user whose record it is
}

// kind is the way in which a value is written.
type kind int

const (
	kindJSON kind = iota
	kindText
	kindFlag
	kindCount
	kindTime
	kindRaw
)

// field is a field of a type of records. Its tag is record:"name" or record:"name,keep".
type field struct {
	name  string
	index []int
	kind  kind
	keep  bool // it is stored also if it is empty
}

// codec decodes and encodes one type of records.
type codec struct {
	fields []field
	names  []string
	at     map[string]int // index of a field by its name
}

func newCodec(t reflect.Type) *codec {
	c := &codec{at: map[string]int{}}
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("record")
		if !ok {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if _, twice := c.at[name]; twice {
			panic(fmt.Sprintf("record: %s has two fields %s", t, name))
		}
		c.at[name] = len(c.fields)
		c.fields = append(c.fields, field{name: name, index: f.Index, kind: kindOf(f.Type), keep: options == "keep"})
		c.names = append(c.names, name)
	}
	return c
}

func kindOf(t reflect.Type) kind {
	switch t {
	case reflect.TypeFor[time.Time]():
		return kindTime
	case reflect.TypeFor[json.RawMessage]():
		return kindRaw
	}
	switch t.Kind() {
	case reflect.String:
		return kindText
	case reflect.Bool:
		return kindFlag
	case reflect.Int, reflect.Uint64:
		return kindCount
	default:
		return kindJSON
	}
}

// decode reads a stored record into a value of its type. A field with another type counts as absent.
func (c *codec) decode(into reflect.Value, m *Meta, stored store.Stored) error {
	m.Stored = stored
	return object.Each(stored.Body, func(name string, value []byte) bool {
		switch i, known := c.at[name]; {
		case known:
			c.fields[i].decode(into.FieldByIndex(c.fields[i].index), value)
		case name == "created":
			m.Created, _ = object.Text(value)
		case name == "updated":
			m.Updated, _ = object.Text(value)
		}
		return true
	})
}

func (f field) decode(into reflect.Value, value []byte) {
	switch f.kind {
	case kindText:
		text, _ := object.Text(value)
		into.SetString(text)
	case kindFlag:
		into.SetBool(string(value) == "true")
	case kindTime:
		text, _ := object.Text(value)
		at, err := time.Parse(object.TimeFormat, text)
		if err != nil {
			at = time.Time{}
		}
		into.Set(reflect.ValueOf(at))
	case kindRaw:
		into.SetBytes(value)
	default:
		if json.Unmarshal(value, into.Addr().Interface()) != nil {
			into.SetZero()
		}
	}
}

// encode returns the text of a value; nil for one that is not stored.
func (f field) encode(v reflect.Value, keep bool) []byte {
	if !keep && isZero(v) {
		return nil
	}
	switch f.kind {
	case kindText:
		return object.AppendString(nil, v.String())
	case kindFlag:
		return strconv.AppendBool(nil, v.Bool())
	case kindTime:
		return object.TimeValue(v.Interface().(time.Time))
	case kindRaw:
		return v.Bytes()
	default:
		return marshal(v.Interface())
	}
}

func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && v.Kind() == reflect.Struct {
		return z.IsZero()
	}
	return v.IsZero()
}

func marshal(v any) []byte {
	o := object.Object{}
	o.Set("", v)
	return o[""]
}

// all returns the fields of a new record.
func (c *codec) all(record reflect.Value) object.Object {
	fields := object.Object{}
	for _, f := range c.fields {
		if value := f.encode(record.FieldByIndex(f.index), f.keep); value != nil {
			fields[f.name] = value
		}
	}
	return fields
}

// changes returns the fields in which a record differs from its stored version. There is at least one field: an
// unchanged record is still written, so that it has a new revision and its events are published.
func (c *codec) changes(m *Meta, record reflect.Value) object.Object {
	fields, stored := object.Object{}, object.Values(m.Body, c.names)
	if m.cleared {
		c.clear(fields, m.Body)
	}
	for i, f := range c.fields {
		v := record.FieldByIndex(f.index)
		write := slices.Contains(m.written, f.name)
		value := f.encode(v, write || f.keep && !m.cleared)
		if m.cleared {
			if value != nil {
				fields[f.name] = value
			}
			continue
		}
		if write || !bytes.Equal(value, stored[i]) && !bytes.Equal(value, f.normal(v.Type(), stored[i])) {
			fields[f.name] = value
		}
	}
	for _, name := range m.removed {
		fields[name] = nil
	}
	if len(fields) == 0 {
		fields[c.names[0]] = stored[0]
	}
	return fields
}

// normal returns the text of a stored value as this codec writes it.
func (f field) normal(t reflect.Type, stored []byte) []byte {
	v := reflect.New(t).Elem()
	if stored != nil {
		f.decode(v, stored)
	}
	return f.encode(v, f.keep)
}

// clear removes all fields except those of the store.
func (c *codec) clear(fields object.Object, body []byte) {
	_ = object.Each(body, func(name string, _ []byte) bool {
		switch name {
		case "uuid", "created", "updated":
		default:
			fields[name] = nil
		}
		return true
	})
}
