package binary

import (
	"encoding/json"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// holding is a property of an object with the records of binaries in it.
type holding struct {
	property string
	records  []json.RawMessage // as the object has them
	services map[string]string // of all properties that hold records
	empty    bool              // the property holds nothing of anybody's
}

func decodeHolding(o store.Stored, property string) (holding, error) {
	decoded, err := o.Object()
	if err != nil {
		return holding{}, err
	}
	h := holding{property: property, services: store.Binaries(decoded)}
	if h.services == nil {
		h.services = map[string]string{}
	}
	value := decoded[property]
	object.Elements(value, func(record []byte) bool {
		h.records = append(h.records, record)
		return true
	})
	isArray := len(value) > 0 && value[0] == '['
	h.empty = value == nil || string(value) == "null" || isArray && len(h.records) == 0
	if h.services[property] != "" && !isArray {
		return h, errs.New(errs.Internal, "%s of %q should hold records of binaries and is no array", property, o.UUID)
	}
	return h, nil
}

// at decodes the record at a place.
func (h holding) at(p Place) (Record, error) {
	if p.Index < 0 || p.Index >= len(h.records) {
		return Record{}, notThere(p)
	}
	return decodeRecord(h.records[p.Index])
}

// fields are what an object gets that is to hold these records. Without any
// the property goes, as if there had never been one.
func (h holding) fields() object.Object {
	if len(h.records) == 0 {
		delete(h.services, h.property)
		return object.Object{h.property: nil, store.BinariesField: encodeServices(h.services)}
	}
	value := []byte{'['}
	for i, record := range h.records {
		if i > 0 {
			value = append(value, ',')
		}
		value = append(value, record...)
	}
	return object.Object{h.property: append(value, ']'), store.BinariesField: encodeServices(h.services)}
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

// uploaded tells of a record that is there now; replaced is nil for a new one.
func (s *Service) uploaded(p Place, index int, record, replaced []byte) store.Also {
	return s.tell(event.BinaryUploaded, p, index, record, replaced)
}

// deleted tells of a record that is gone.
func (s *Service) deleted(p Place, index int, record []byte) store.Also {
	return s.tell(event.BinaryDeleted, p, index, record, nil)
}

func (s *Service) tell(name event.Name, p Place, index int, record, replaced []byte) store.Also {
	return func(e *event.Envelope) {
		e.Event, e.Object, e.ObjectOmitted = name, nil, false
		e.Property, e.Index, e.Record = p.Property, &index, record
		e.Binaries = encodeServices(map[string]string{p.Property: s.Name})
		if replaced != nil {
			e.Previous = object.Object{"record": replaced}
		}
	}
}
