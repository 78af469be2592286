package binary

import (
	"encoding/json"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// recordList is a property of an object that has records of binaries, or may get
// some.
type recordList struct {
	property string
	records  []json.RawMessage // as they are stored
	services map[string]string // the services of all properties that have records
	empty    bool              // the property has no value, or an empty array
}

func decodeRecords(o store.Stored, property string) (recordList, error) {
	decoded, err := o.Object()
	if err != nil {
		return recordList{}, err
	}
	l := recordList{property: property, services: store.Binaries(decoded)}
	if l.services == nil {
		l.services = map[string]string{}
	}
	value := decoded[property]
	object.Elements(value, func(record []byte) bool {
		l.records = append(l.records, record)
		return true
	})
	isArray := len(value) > 0 && value[0] == '['
	l.empty = value == nil || string(value) == "null" || isArray && len(l.records) == 0
	if l.services[property] != "" && !isArray {
		return l, errs.New(errs.Internal, "%s of %q is not an array of binary records", property, o.UUID)
	}
	return l, nil
}

// at decodes the record at a place.
func (l recordList) at(p Place) (Record, error) {
	if p.Index < 0 || p.Index >= len(l.records) {
		return Record{}, notFound(p)
	}
	return decodeRecord(l.records[p.Index])
}

// fields returns the fields of the object that change when it gets these
// records. Without any record the property is removed.
func (l recordList) fields() object.Object {
	if len(l.records) == 0 {
		delete(l.services, l.property)
		return object.Object{l.property: nil, store.BinariesField: encodeServices(l.services)}
	}
	value := []byte{'['}
	for i, record := range l.records {
		if i > 0 {
			value = append(value, ',')
		}
		value = append(value, record...)
	}
	return object.Object{l.property: append(value, ']'), store.BinariesField: encodeServices(l.services)}
}

func encodeServices(services map[string]string) json.RawMessage {
	if len(services) == 0 {
		return nil
	}
	o := make(object.Object, len(services))
	for property, service := range services {
		o[property] = object.AppendString(nil, service)
	}
	return o.Encode()
}

// uploadedEvent is the event of a record that was added; replaced is the record
// that it replaced, or nil.
func (s *Service) uploadedEvent(p Place, index int, record, replaced []byte) store.ExtraEvent {
	return s.event(event.BinaryUploaded, p, index, record, replaced)
}

// deletedEvent is the event of a record that was removed.
func (s *Service) deletedEvent(p Place, index int, record []byte) store.ExtraEvent {
	return s.event(event.BinaryDeleted, p, index, record, nil)
}

func (s *Service) event(name event.Name, p Place, index int, record, replaced []byte) store.ExtraEvent {
	return func(e *event.Envelope) {
		e.Event, e.Object, e.ObjectOmitted = name, nil, false
		e.Property, e.Index, e.Record = p.Property, &index, record
		e.Binaries = encodeServices(map[string]string{p.Property: s.name})
		if replaced != nil {
			e.Previous = object.Object{"record": replaced}
		}
	}
}
