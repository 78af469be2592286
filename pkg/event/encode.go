package event

import (
	"maps"
	"slices"
	"strconv"

	"belfry/pkg/object"
)

// Append appends the envelope as JSON, as encoding/json would write it. Every
// write encodes one, so this is done by hand.
func (e *Envelope) Append(dst []byte) []byte {
	str := func(name, value string) {
		dst = append(dst, name...)
		dst = object.AppendString(dst, value)
	}
	texts := func(begins string, all []string) {
		for i, one := range all {
			if i > 0 {
				begins = ","
			}
			dst = object.AppendString(append(dst, begins...), one)
		}
		if len(all) > 0 {
			dst = append(dst, ']')
		}
	}
	str(`{"id":`, e.ID)
	str(`,"event":`, string(e.Event))
	str(`,"time":`, e.Time)
	str(`,"store":`, e.Store)
	str(`,"uuid":`, e.UUID)
	dst = append(dst, `,"revision":"`...)
	dst = strconv.AppendUint(dst, e.Revision, 10)
	if e.Actor == nil {
		dst = append(dst, `","actor":null`...)
	} else {
		str(`","actor":`, *e.Actor)
	}
	str(`,"origin":`, e.Origin)
	if len(e.Object) > 0 {
		dst = append(dst, `,"object":`...)
		dst = append(dst, e.Object...)
	}
	if e.ObjectOmitted {
		dst = append(dst, `,"objectOmitted":true`...)
	}
	if len(e.Previous) > 0 {
		dst = append(dst, `,"previous":`...)
		dst = append(dst, e.Previous.Encode()...)
	}
	if e.PreviousOmitted {
		dst = append(dst, `,"previousOmitted":true`...)
	}
	dst = e.appendArrays(dst)
	texts(`,"changed":[`, e.Changed)
	texts(`,"added":[`, e.Added)
	if len(e.Binaries) > 0 {
		dst = append(dst, `,"binaries":`...)
		dst = append(dst, e.Binaries...)
	}
	if len(e.User) > 0 {
		dst = append(dst, `,"user":`...)
		dst = append(dst, e.User...)
	}
	if len(e.Datas) > 0 {
		dst = append(dst, `,"datas":`...)
		dst = append(dst, e.Datas...)
	}
	if e.Property != "" {
		str(`,"property":`, e.Property)
	}
	if e.Index != nil {
		dst = append(dst, `,"index":`...)
		dst = strconv.AppendInt(dst, int64(*e.Index), 10)
	}
	if len(e.Record) > 0 {
		dst = append(dst, `,"record":`...)
		dst = append(dst, e.Record...)
	}
	if len(e.Auth) > 0 {
		dst = append(dst, `,"auth":`...)
		dst = append(dst, e.Auth...)
	}
	dst = append(dst, `,"ctx":`...)
	dst = e.Ctx.append(dst)
	return append(dst, '}')
}

// appendArrays appends the entries that have changed.
func (e *Envelope) appendArrays(dst []byte) []byte {
	begins := `,"arrays":{`
	for _, name := range slices.Sorted(maps.Keys(e.Arrays)) {
		entries := e.Arrays[name]
		dst = append(object.AppendString(append(dst, begins...), name), ":{"...)
		member := `"set":[`
		for _, entry := range entries.Set {
			dst = append(append(dst, member...), entry...)
			member = ","
		}
		if len(entries.Set) > 0 {
			dst = append(dst, ']')
			member = `,"removed":[`
		} else {
			member = `"removed":[`
		}
		for _, uuid := range entries.Removed {
			dst = object.AppendString(append(dst, member...), uuid)
			member = ","
		}
		if len(entries.Removed) > 0 {
			dst = append(dst, ']')
		}
		dst = append(dst, '}')
		begins = ","
	}
	if len(e.Arrays) > 0 {
		dst = append(dst, '}')
	}
	return dst
}

func (c Ctx) append(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	for _, f := range [...]struct{ name, value string }{
		{"request", c.Request}, {"address", c.Address}, {"userAgent", c.UserAgent},
		{"trace", c.Trace}, {"wait", c.Wait}, {"rest", c.Rest},
	} {
		if f.value == "" {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, '"')
		dst = append(dst, f.name...)
		dst = append(dst, `":`...)
		dst = object.AppendString(dst, f.value)
	}
	return append(dst, '}')
}
