package mapping

import (
	"slices"

	"belfry/pkg/object"
)

// OverflowField is the internal field of a target that holds the overflow of
// each of its marked arrays: a JSON object, the array's name → unconfirmed.
const OverflowField = "_overflow"

// overflow is a target's record about an array that reached its limit.
type overflow struct {
	// marked makes a later removal query the index for an object to refill
	// the array with.
	marked bool

	// unconfirmed are sources whose entries were changed although no event of
	// theirs was being handled, and which have not been read again since. The
	// worker that changed them reads them again; if it crashes, the next round
	// of any worker does.
	unconfirmed []string
}

func readOverflow(body []byte, array string) overflow {
	value := object.Field(object.Field(body, OverflowField), array)
	o := overflow{marked: value != nil}
	object.Elements(value, func(v []byte) bool {
		if uuid, ok := object.Text(v); ok {
			o.unconfirmed = append(o.unconfirmed, uuid)
		}
		return true
	})
	return o
}

func (o overflow) equal(p overflow) bool {
	return o.marked == p.marked && slices.Equal(o.unconfirmed, p.unconfirmed)
}

// update returns a target's OverflowField with this overflow of an array; nil
// when no array is marked.
func (o overflow) update(body []byte, array string) []byte {
	if !o.marked {
		return withMember(body, OverflowField, array, nil)
	}
	return withMember(body, OverflowField, array, append([]string{}, o.unconfirmed...))
}

// withMember returns a field of a target that holds something of each array, with this value for one of them, nil for
// none; and nil when it holds nothing.
func withMember(body []byte, field, array string, value any) []byte {
	all, err := object.Decode(object.Field(body, field))
	if err != nil {
		all = object.Object{}
	}
	delete(all, array)
	if value != nil {
		all.Set(array, value)
	}
	if len(all) == 0 {
		return nil
	}
	return all.Encode()
}
