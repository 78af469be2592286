package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/aggregate"
	"belfry/pkg/store/driver"
)

// Functions of aggregates.
const (
	CountFunction = "count"
	SumFunction   = "sum"
	MinFunction   = "min"
	MaxFunction   = "max"
)

// Summed returns the fields of source objects that have a sum, sorted.
func (m *Mapping) Summed() []string {
	return m.aggregatedFields(func(a Aggregate) bool { return a.Function == SumFunction })
}

// Ordered returns the fields of source objects that have a least or a greatest value, sorted.
func (m *Mapping) Ordered() []string {
	return m.aggregatedFields(func(a Aggregate) bool { return a.Function == MinFunction || a.Function == MaxFunction })
}

func (m *Mapping) aggregatedFields(has func(Aggregate) bool) (fields []string) {
	for _, a := range m.Aggregates {
		if has(a) && !slices.Contains(fields, a.Field) {
			fields = append(fields, a.Field)
		}
	}
	slices.Sort(fields)
	return fields
}

// Counts reports whether an encoded object contributes to the aggregates of a target. body is nil if it does not exist.
func (m *Mapping) Counts(uuid string, body []byte, target Target) bool {
	return body != nil && slices.Contains(KeyTargets(object.Field(body, m.Key)), target.UUID) &&
		m.Owned(uuid, body, target) && !m.Hides(body)
}

// AggregatesField is the internal field of a target that says by which definitions its aggregates were computed of all
// objects: the store of the objects → the definition. Until a target has the current one, only a walk over all of its
// objects writes its aggregates: they would be those of a few.
const AggregatesField = "_aggregates"

// aggregateRecords are where a store keeps what its objects' aggregates are computed of.
type aggregateRecords struct {
	driver     driver.Store
	generation string // of the records: another one after they were lost, or restored
}

// aggregateSuffix ends the name of a driver's store with such records. It has a dot, which the names of others have
// not.
const aggregateSuffix = ".aggregates"

// openAggregates opens the driver's store of the aggregates. Its indexes are the same in every configuration.
func (m *opened) openAggregates(ctx context.Context, backend driver.Backend, name string) error {
	d, err := backend.Open(ctx, aggregate.Spec(name+aggregateSuffix))
	if err != nil {
		return errs.Wrap(err, errs.KindOf(err), "opening the aggregates of store %s", name)
	}
	generation, err := readGeneration(ctx, d)
	if err == nil {
		m.aggregate = &aggregateRecords{driver: d, generation: generation}
	}
	return err
}

// Aggregates are the records of a store's aggregates, and say which properties they are.
type Aggregates struct {
	records     *aggregateRecords
	mappings    []Mapping
	definitions map[string]string // by source
	empty       object.Object     // what a new object has
}

func newAggregates(o *Options, records *aggregateRecords) *Aggregates {
	if records == nil || len(o.Aggregated) == 0 {
		return nil
	}
	a := &Aggregates{records: records, mappings: o.Aggregated}
	a.define()
	return a
}

// define computes what depends on the generation of the records.
func (a *Aggregates) define() {
	a.definitions, a.empty = map[string]string{}, object.Object{}
	for i := range a.mappings {
		m := &a.mappings[i]
		a.definitions[m.Source] = m.aggregation(a.records.generation)
		for _, each := range m.Aggregates {
			if each.Function == CountFunction || each.Function == SumFunction {
				a.empty[each.Property] = []byte("0")
			}
		}
	}
	a.empty.Set(AggregatesField, a.definitions)
}

// aggregation identifies everything that aggregates depend on besides objects.
func (m *Mapping) aggregation(generation string) string {
	when := ""
	if m.When != nil {
		when = fmt.Sprint(m.When)
	}
	data, err := json.Marshal([]any{generation, m.Key, when, m.SourceOwner, m.TargetOwner, m.Aggregates})
	if err != nil {
		panic("store: " + err.Error()) // texts can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// setEmpty gives a new object the aggregates of no objects. Those that name it already are added by its event.
func (a *Aggregates) setEmpty(o object.Object) {
	if a == nil {
		return
	}
	for name, value := range a.empty {
		o[name] = value
	}
}

// Aggregates returns the records of the aggregates of the store's objects; nil without any.
func (s *Store) Aggregates() *Aggregates { return s.aggregates }

// Records returns the driver's store of the records; see package aggregate.
func (a *Aggregates) Records() driver.Store { return a.records.driver }

// Definition identifies everything that the aggregates of objects of a store depend on besides these, also whether the
// records were lost.
func (a *Aggregates) Definition(source string) string { return a.definitions[source] }

// IsCurrent reports whether the aggregates of an encoded object were computed of all objects of a store, by the current
// definition.
func (a *Aggregates) IsCurrent(body []byte, source string) bool {
	text, _ := object.Text(object.Field(object.Field(body, AggregatesField), source))
	return text == a.definitions[source]
}

// Current returns the AggregatesField of an encoded object whose aggregates of a store's objects are computed.
func (a *Aggregates) Current(body []byte, source string) []byte {
	all, err := object.Decode(object.Field(body, AggregatesField))
	if err != nil {
		all = object.Object{}
	}
	all.Set(source, a.definitions[source])
	return all.Encode()
}

// Renew begins another generation of the records, before objects are copied without theirs, and before anything else
// uses them. It does nothing without aggregates.
func (a *Aggregates) Renew(ctx context.Context) error {
	if a == nil {
		return nil
	}
	next, err := renewGeneration(ctx, a.records.driver)
	if err == nil {
		a.records.generation = next
		a.define()
	}
	return err
}
