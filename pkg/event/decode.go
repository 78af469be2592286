package event

import (
	"strconv"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Decode reads an envelope that Append wrote. It checks only as much syntax as it needs,
// since it runs for every event. The values of the envelope refer to data, which must not
// change afterwards.
func Decode(data []byte) (Envelope, error) {
	var e Envelope
	var failed error
	err := object.Each(data, func(name string, value []byte) bool {
		failed = e.set(name, value)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err == nil && (e.ID == "" || e.Event == "") {
		err = errs.New(errs.Invalid, "an event has no id or no name")
	}
	return e, err
}

func (e *Envelope) set(name string, value []byte) (err error) {
	text := func(into *string) {
		var ok bool
		if *into, ok = object.Text(value); !ok {
			err = errs.New(errs.Invalid, "an event's %s is not a string", name)
		}
	}
	texts := func(into *[]string) {
		object.Elements(value, func(element []byte) bool {
			one, ok := object.Text(element)
			if !ok {
				err = errs.New(errs.Invalid, "an event's %s has an element that is not a string", name)
			}
			*into = append(*into, one)
			return ok
		})
	}
	switch name {
	case "id":
		text(&e.ID)
	case "event":
		text((*string)(&e.Event))
	case "time":
		text(&e.Time)
	case "store":
		text(&e.Store)
	case "uuid":
		text(&e.UUID)
	case "origin":
		text(&e.Origin)
	case "revision":
		var digits string
		if text(&digits); err == nil {
			e.Revision, err = strconv.ParseUint(digits, 10, 64)
		}
	case "actor":
		if string(value) != "null" {
			e.Actor = new(string)
			text(e.Actor)
		}
	case "object":
		e.Object = value
	case "objectOmitted":
		e.ObjectOmitted = string(value) == "true"
	case "previous":
		e.Previous, err = object.Decode(value)
	case "previousOmitted":
		e.PreviousOmitted = string(value) == "true"
	case "arrays":
		e.Arrays, err = decodeArrays(value)
	case "changed":
		texts(&e.Changed)
	case "added":
		texts(&e.Added)
	case "binaries":
		e.Binaries = value
	case "user":
		e.User = value
	case "datas":
		e.Datas = value
	case "property":
		text(&e.Property)
	case "index":
		e.Index = new(int)
		*e.Index, err = strconv.Atoi(string(value))
	case "record":
		e.Record = value
	case "auth":
		e.Auth = value
	case "ctx":
		err = e.Ctx.decode(value)
	}
	return err
}

// decodeArrays reads the entries that have changed.
func decodeArrays(data []byte) (map[string]Entries, error) {
	arrays := map[string]Entries{}
	valid := true
	err := object.Each(data, func(name string, value []byte) bool {
		var entries Entries
		object.Elements(object.Field(value, "set"), func(entry []byte) bool {
			entries.Set = append(entries.Set, entry)
			return true
		})
		object.Elements(object.Field(value, "removed"), func(element []byte) bool {
			var uuid string
			uuid, valid = object.Text(element)
			entries.Removed = append(entries.Removed, uuid)
			return valid
		})
		arrays[name] = entries
		return valid
	})
	if err == nil && !valid {
		err = errs.New(errs.Invalid, "an event's arrays have a removed entry that is not a uuid")
	}
	return arrays, err
}

func (c *Ctx) decode(data []byte) error {
	valid := true
	err := object.Each(data, func(name string, value []byte) bool {
		switch name {
		case "request":
			c.Request, valid = object.Text(value)
		case "address":
			c.Address, valid = object.Text(value)
		case "userAgent":
			c.UserAgent, valid = object.Text(value)
		case "trace":
			c.Trace, valid = object.Text(value)
		case "wait":
			c.Wait, valid = object.Text(value)
		case "rest":
			c.Rest, valid = object.Text(value)
		}
		return valid
	})
	if err == nil && !valid {
		err = errs.New(errs.Invalid, "an event's ctx has a value that is not a string")
	}
	return err
}
