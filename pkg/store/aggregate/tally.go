package aggregate

import (
	"bytes"
	"encoding/json"
)

// Tally is what aggregates are of objects that are read one after the other, without their records.
type Tally struct {
	Accumulator
	least, greatest map[string]extreme // by field
}

// extreme is a least or greatest value.
type extreme struct {
	order []byte
	value json.RawMessage
}

// Add adds the values of an object; nil for one that does not contribute.
func (t *Tally) Add(v *Values) {
	t.add(v, 1)
	if v == nil {
		return
	}
	for _, o := range v.Ordered {
		if len(o.Value) == 0 || string(o.Value) == "null" {
			continue
		}
		if t.least == nil {
			t.least, t.greatest = map[string]extreme{}, map[string]extreme{}
		}
		order, _ := orderOf(o.Value)
		if was, has := t.least[o.Field]; !has || bytes.Compare(order, was.order) < 0 {
			t.least[o.Field] = extreme{order, o.Value}
		}
		if was, has := t.greatest[o.Field]; !has || bytes.Compare(order, was.order) > 0 {
			t.greatest[o.Field] = extreme{order, o.Value}
		}
	}
}

// Extreme returns the least or the greatest value of a field; nil without any.
func (t *Tally) Extreme(field string, greatest bool) []byte {
	if t.Long[field] > 0 {
		return nil
	}
	if greatest {
		return t.greatest[field].value
	}
	return t.least[field].value
}
