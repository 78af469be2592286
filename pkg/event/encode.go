package event

import (
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
	if len(e.Arrays) == 0 {
		return dst
	}
	arrays := make(object.Object, len(e.Arrays))
	for name, entries := range e.Arrays {
		arrays[name] = entries.encode()
	}
	return append(append(dst, `,"arrays":`...), arrays.Encode()...)
}

func (e Entries) encode() []byte {
	members := object.Object{}
	if len(e.Set) > 0 {
		set, separator := make([]byte, 0, e.Size()+1), byte('[')
		for _, entry := range e.Set {
			set = append(append(set, separator), entry...)
			separator = ','
		}
		members["set"] = append(set, ']')
	}
	if len(e.Removed) > 0 {
		members.Set("removed", e.Removed)
	}
	return members.Encode()
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
