// Package aggregate has the records by which counts, sums, least and greatest values over any number of objects are
// maintained, and the arithmetic on their values. docs/mapping.md has the protocol.
//
// The objects that name a target contribute to an accumulator of it. A contribution is a record for each of them, and
// the accumulator has their count and their sums. Least and greatest values are the first and the last contributions of
// an index. Nothing here reads or writes a record.
package aggregate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
)

// MaxOrdered is how many fields of one mapping can have a least or a greatest value: each takes an index.
const MaxOrdered = 4

// Place identifies an accumulator: a target of the objects of a store, and the owner of those that count; "" for all.
type Place struct{ Source, Target, Owner string }

// ID is the uuid of the accumulator.
func (p Place) ID() string { return hashOf("place", p.Source, p.Target, p.Owner) }

// Contribution is the uuid of the contribution of an object.
func (p Place) Contribution(object string) string { return p.ID() + "-" + hashOf("object", object) }

func hashOf(texts ...string) string {
	var all []byte
	for _, text := range texts {
		all = append(binary.AppendUvarint(all, uint64(len(text))), text...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}

// Values are what an object adds to an accumulator besides its count, by field. Their JSON is the same for equal
// values.
type Values struct {
	// Sums are numbers in their one form; unusable: one that can't be a part of a sum. Values that are no numbers are
	// left out.
	Sums map[string]string `json:"s,omitempty"`

	// Ordered are scalar values, in the order of their indexes; their Value is null if there is no key for it.
	Ordered []Ordered `json:"k,omitempty"`
}

// Ordered is the value of a field that has a least or a greatest value.
type Ordered struct {
	Field string          `json:"f"`
	Value json.RawMessage `json:"v,omitempty"` // nil: it is left out
}

const unusable = "!"

// NewValues returns what an encoded object adds, of its fields with sums and with least or greatest values.
func NewValues(body []byte, summed, ordered []string) *Values {
	v := &Values{}
	values := object.Values(body, summed)
	for i, field := range summed {
		value := values[i]
		if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
			continue
		}
		text := unusable
		if n, ok := parseNumber(value); ok && n.isSummable() {
			text = string(n.text())
		}
		if v.Sums == nil {
			v.Sums = map[string]string{}
		}
		v.Sums[field] = text
	}
	for i, value := range object.Values(body, ordered) {
		v.Ordered = append(v.Ordered, Ordered{Field: ordered[i], Value: orderedValue(value)})
	}
	return v
}

// orderedValue returns a value as it is kept; nil for one that is left out.
func orderedValue(value []byte) json.RawMessage {
	if len(value) == 0 || value[0] == 'n' || value[0] == '[' || value[0] == '{' {
		return nil
	}
	if _, ok := orderOf(value); !ok {
		return json.RawMessage("null")
	}
	switch value[0] {
	case '"', 't', 'f':
		return bytes.Clone(object.Canonical(value))
	default:
		n, _ := parseNumber(value)
		return n.text()
	}
}

// Equal reports whether both are the same; nil is that of an object that does not contribute.
func (v *Values) Equal(other *Values) bool {
	if v == nil || other == nil {
		return v == other
	}
	return bytes.Equal(encode(v), encode(other))
}

// Contribution is what an object contributes to an accumulator.
type Contribution struct {
	Place  string `json:"a"` // the accumulator
	Group  string `json:"g"` // all accumulators of a target
	Object string `json:"x"`
	Owner  string `json:"o,omitempty"`
	Values
}

// NewContribution returns the record of an object's values.
func (p Place) NewContribution(object string, v *Values) Contribution {
	return Contribution{Place: p.ID(), Group: p.Group(), Object: object, Owner: p.Owner, Values: *v}
}

// Group identifies all accumulators of a target, of any owner.
func (p Place) Group() string { return hashOf("group", p.Source, p.Target) }

// Encode returns the body of the record.
func (c *Contribution) Encode() []byte { return encode(c) }

// DecodeContribution reads a record.
func DecodeContribution(body []byte) (Contribution, error) {
	var c Contribution
	err := json.Unmarshal(body, &c)
	return c, errs.Wrap(err, errs.Internal, "a contribution to an aggregate can't be read")
}

// Has reports whether an object still has the key by which an index has found its contribution.
func (c *Contribution) Has(place, field string) (value []byte, ok bool) {
	for _, o := range c.Ordered {
		if o.Field == field && c.Place == place {
			return o.Value, len(o.Value) > 0 && string(o.Value) != "null"
		}
	}
	return nil, false
}

// Sum is the sum of a field.
type Sum struct {
	Total    string `json:"v"`
	Unusable int64  `json:"u,omitempty"` // numbers that can't be summed
}

// Op is a change of a contribution that its accumulator has counted. It is made once: From one revision of the
// contribution To another one.
type Op struct {
	Object string  `json:"x"`
	From   uint64  `json:"f,omitempty"` // 0: the object did not contribute
	To     uint64  `json:"t"`
	Values *Values `json:"v"` // nil: it no longer does
}

// Accumulator is what the contributions of a place have in common.
type Accumulator struct {
	Count int64            `json:"n"`
	Sums  map[string]Sum   `json:"s,omitempty"`
	Long  map[string]int64 `json:"l,omitempty"` // values of fields that have no key, because they are too long
	Ops   []Op             `json:"ops,omitempty"`
}

// DecodeAccumulator reads a record.
func DecodeAccumulator(body []byte) (*Accumulator, error) {
	a := &Accumulator{}
	err := json.Unmarshal(body, a)
	return a, errs.Wrap(err, errs.Internal, "an accumulator of aggregates can't be read")
}

// Encode returns the body of the record.
func (a *Accumulator) Encode() []byte { return encode(a) }

// Next returns an accumulator after changes of contributions, without the changes that this one has recorded.
func (a *Accumulator) Next() *Accumulator {
	return &Accumulator{Count: a.Count, Sums: maps.Clone(a.Sums), Long: maps.Clone(a.Long)}
}

// Change replaces the values of an object by others, and records that.
func (a *Accumulator) Change(op Op, before *Values) {
	a.add(before, -1)
	a.add(op.Values, 1)
	a.Ops = append(a.Ops, op)
}

func (a *Accumulator) add(v *Values, times int64) {
	if v == nil {
		return
	}
	a.Count += times
	for field, text := range v.Sums {
		sum := a.Sums[field]
		if text == unusable {
			sum.Unusable += times
		} else if t := totalOf(sum.Total); times > 0 {
			sum.Total = t.plus(totalOf(text)).String()
		} else {
			sum.Total = t.minus(totalOf(text)).String()
		}
		if a.Sums == nil {
			a.Sums = map[string]Sum{}
		}
		if a.Sums[field] = sum; sum.Unusable == 0 && (sum.Total == "0" || sum.Total == "") {
			delete(a.Sums, field)
		}
	}
	for _, o := range v.Ordered {
		if string(o.Value) != "null" {
			continue
		}
		if a.Long == nil {
			a.Long = map[string]int64{}
		}
		if a.Long[o.Field] += times; a.Long[o.Field] == 0 {
			delete(a.Long, o.Field)
		}
	}
}

// Sum returns the sum of a field as JSON; nil if it can't be written exactly.
func (a *Accumulator) Sum(field string) []byte {
	sum := a.Sums[field]
	n := totalOf(sum.Total).number()
	if sum.Unusable > 0 || len(n.digits) > maxDigits {
		return nil
	}
	return n.text()
}

// Same reports whether accumulators have the same counts and sums.
func (a *Accumulator) Same(other *Accumulator) bool {
	return a.Count == other.Count && maps.Equal(a.Sums, other.Sums) && maps.Equal(a.Long, other.Long)
}

// Spec describes the records to a driver. It does not depend on the configuration: an ordered field has the index of
// its place among those of its mapping.
func Spec(name string) driver.Spec {
	spec := driver.Spec{Name: name, Keys: keys, Indexes: []driver.Index{{Name: groupIndex, Parts: 1}}}
	for i := range MaxOrdered {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: orderIndex(i), Parts: 1 + valueParts})
	}
	return spec
}

const groupIndex = "group"

func orderIndex(place int) string { return "order" + string(rune('0'+place)) }

// keys are those of a contribution. They are empty for an accumulator.
func keys(body []byte) []driver.Key {
	var c Contribution
	if json.Unmarshal(body, &c) != nil || c.Group == "" {
		return nil
	}
	all := []driver.Key{{Index: groupIndex, Parts: [][]byte{[]byte(c.Group)}}}
	for i, o := range c.Ordered {
		if len(o.Value) == 0 || i >= MaxOrdered {
			continue
		}
		if order, ok := orderOf(o.Value); ok {
			of := []byte(hashOf(c.Place, o.Field))
			all = append(all, driver.Key{Index: orderIndex(i), Parts: append([][]byte{of}, parts(order)...)})
		}
	}
	return all
}

// Keys returns the keys of a record.
func Keys(body []byte) []driver.Key { return keys(body) }

// Contributions is the query for the contributions to all accumulators of a target.
func (p Place) Contributions(limit int) driver.Query {
	return driver.Query{Index: groupIndex, Equal: [][]byte{[]byte(p.Group())}, Limit: limit}
}

// Extreme is the query for the contribution with the least or the greatest value of an ordered field, which has a place
// among those of its mapping.
func (p Place) Extreme(place int, field string, greatest bool, limit int) driver.Query {
	return driver.Query{
		Index: orderIndex(place), Equal: [][]byte{[]byte(hashOf(p.ID(), field))}, Descending: greatest, Limit: limit,
	}
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("aggregate: " + err.Error()) // texts and numbers can be encoded
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
