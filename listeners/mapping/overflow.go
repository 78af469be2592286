package mapping

import (
	"slices"

	"belfry/pkg/store/object"
)

// Overflow is the internal field of a target that holds an overflow for each
// of its arrays that has a mark: a JSON object, the array's name → refilled.
const Overflow = "_overflow"

// overflow is what a target knows of an array that had no room for every object.
type overflow struct {
	// marked tells a later removal to look for the next one.
	marked bool

	// refilled are sources whose entries were changed though no event of
	// theirs was in hand, and which have not been looked at again since: what
	// whoever changed them has to do, and others do if it breaks off.
	refilled []string
}

func readOverflow(body []byte, array string) overflow {
	value := object.Field(object.Field(body, Overflow), array)
	o := overflow{marked: value != nil}
	object.Elements(value, func(v []byte) bool {
		if uuid, ok := object.Text(v); ok {
			o.refilled = append(o.refilled, uuid)
		}
		return true
	})
	return o
}

func (o overflow) same(p overflow) bool {
	return o.marked == p.marked && slices.Equal(o.refilled, p.refilled)
}

// write returns the field Overflow of a target with this of an array; nil when
// none has a mark any more.
func (o overflow) write(body []byte, array string) []byte {
	all, err := object.Decode(object.Field(body, Overflow))
	if err != nil {
		all = object.Object{}
	}
	delete(all, array)
	if o.marked {
		all.Set(array, append([]string{}, o.refilled...))
	}
	if len(all) == 0 {
		return nil
	}
	return all.Encode()
}
