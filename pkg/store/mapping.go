package store

import (
	"slices"

	"belfry/pkg/object"
)

// Mapping keeps copies of a source store's objects in an array of a target
// store's objects: each source object X whose Key refers to a target T has
// one entry in T's Array, with X's uuid and Fields.
//
// Without an Array nothing is copied. With neither Array nor Aggregates it is a link, to which only Cascade applies.
type Mapping struct {
	Source  string   // store whose objects are copied
	Target  string   // store whose objects hold the copies
	Key     string   // property of a source object: what names a target (see object.Named), or an array of that
	Array   string   // property of a target object
	Fields  []string // what is copied besides uuid
	Cascade bool     // deleting a target deletes its source objects
	Limit   int      // most entries of an array

	MaxBytes int // most bytes of an array; 0: any number
	MaxEntry int // most bytes of an entry; a larger one is left out; 0: any number

	When Condition // only objects for which it holds have an entry, or are aggregated; nil: all

	Aggregates []Aggregate // properties of a target object that are computed of all objects that name it

	// FollowsWorkers says that an entry depends on computed fields, which change with the writes of workers too.
	FollowsWorkers bool

	// The fields that hold the owners, where an object has an entry only in a target of
	// the same owner: "uuid" in the store of users, who own themselves. "": owners do not matter.
	SourceOwner, TargetOwner string
}

// Aggregate is a field of a target with a function of all source objects that name the target.
type Aggregate struct {
	Property string
	Function string // count, sum, min or max
	Field    string // of the source objects; "" for count
}

// Target is the part of a target that its entries depend on.
type Target struct {
	UUID  string
	Owner string // "" without an owner, or if the mapping does not need it
}

// TargetOf returns an encoded object as a target. body is nil if it does not exist.
func (m *Mapping) TargetOf(uuid string, body []byte) Target {
	return Target{UUID: uuid, Owner: ownerOf(m.TargetOwner, uuid, body)}
}

// DeletedTarget returns the target that a deleted object was.
func (m *Mapping) DeletedTarget(uuid string, t Tombstone) Target {
	owner := t.Owner
	if !m.OwnerChanges() {
		owner = ownerOf(m.TargetOwner, uuid, nil)
	}
	return Target{UUID: uuid, Owner: owner}
}

// SourceOf returns the owner of a source object as far as the mapping asks.
func (m *Mapping) SourceOf(uuid string, body []byte) (owner string) {
	return ownerOf(m.SourceOwner, uuid, body)
}

func ownerOf(field, uuid string, body []byte) string {
	switch field {
	case "":
		return ""
	case "uuid":
		return uuid
	default:
		owner, _ := object.Text(object.Field(body, field))
		return owner
	}
}

// OwnerChanges reports whether the entries of a target depend on a field of it that can change.
func (m *Mapping) OwnerChanges() bool { return m.TargetOwner != "" && m.TargetOwner != "uuid" }

// Owned reports whether a source object has the owner of a target, if the mapping asks. An
// object without an owner has the owner of no other.
func (m *Mapping) Owned(uuid string, body []byte, target Target) bool {
	return m.SourceOwner == "" || target.Owner != "" && m.SourceOf(uuid, body) == target.Owner
}

// Condition decides about an encoded object. It must be a function of the object alone: arrays
// converge because every process always computes the same entry for the same object.
type Condition interface{ Holds(body []byte) bool }

// Hides reports whether an object has no entry because the condition does not hold.
func (m *Mapping) Hides(body []byte) bool { return m.When != nil && !m.When.Holds(body) }

// Full reports whether an array with so many entries and bytes takes no further one. It
// depends on the array alone: an array takes any entry, or none.
func (m *Mapping) Full(entries, bytes int) bool {
	return entries >= m.Limit || m.MaxBytes > 0 && bytes > m.MaxBytes-m.MaxEntry
}

// Exceeds reports whether an array with so many entries and bytes has more than it may.
func (m *Mapping) Exceeds(entries, bytes int) bool {
	return entries > m.Limit || m.MaxBytes > 0 && bytes > m.MaxBytes
}

// MaxKeyTargets is the most targets that the key of one object refers to. It
// bounds the index entries and the event of one write.
const MaxKeyTargets = 256

// KeyTargets returns the uuids that a key's value refers to, each once: that of a value, or those
// of an array's elements. Other values refer to nothing; see object.Named.
func KeyTargets(value []byte) []string {
	if uuid, ok := object.Named(value); ok {
		return []string{uuid}
	}
	var targets []string
	seen := map[string]bool{}
	object.Elements(value, func(element []byte) bool {
		if uuid, ok := object.Named(element); ok && !seen[uuid] {
			seen[uuid] = true
			targets = append(targets, uuid)
		}
		return true
	})
	return targets
}

// WhyUnnamed says why a key's value, or an element of it, refers to nothing although it is there; "" when all of it
// does.
func WhyUnnamed(value []byte) (why string) {
	if len(value) == 0 || value[0] != '[' {
		return object.WhyUnnamed(value)
	}
	object.Elements(value, func(element []byte) bool {
		why = object.WhyUnnamed(element)
		return why == ""
	})
	return why
}

// Entry returns the copy of a source object for the array of a target. body is the encoded object; nil if it does not
// exist. Entry returns nil if one of these holds:
//
//   - The object does not exist, or refers to another target.
//   - The mapping requires the owner of the target, and the object has another one.
//   - The object does not meet the condition.
//   - The copy is larger than MaxEntry.
func (m *Mapping) Entry(uuid string, body []byte, target Target) []byte {
	entry := m.copyOf(uuid, body, target)
	if m.IsTooLarge(entry) {
		return nil
	}
	return entry
}

// IsTooLarge reports whether a copy is larger than an entry may be.
func (m *Mapping) IsTooLarge(entry []byte) bool { return m.MaxEntry > 0 && len(entry) > m.MaxEntry }

// TooLarge reports whether an object refers to a target and has no entry there because
// that would be larger than MaxEntry.
func (m *Mapping) TooLarge(uuid string, body []byte, target Target) bool {
	if m.MaxEntry == 0 || len(body)+512 < m.MaxEntry { // an entry is hardly larger than its object
		return false
	}
	return len(m.copyOf(uuid, body, target)) > m.MaxEntry
}

// FitsNow reports whether an encoded object has no entry by the size that releases before have counted, of its strings
// as a client has escaped them, and has one by that of Copy.
func (m *Mapping) FitsNow(uuid string, body []byte) bool {
	if m.Array == "" || m.MaxEntry == 0 || len(body)+512 < m.MaxEntry {
		return false
	}
	entry, escapes := len(m.Copy(uuid, body)), 0
	for _, value := range object.Values(body, m.Fields) {
		escapes += len(value) - len(object.Canonical(value))
	}
	return entry <= m.MaxEntry && entry+escapes > m.MaxEntry
}

func (m *Mapping) copyOf(uuid string, body []byte, target Target) []byte {
	if body == nil {
		return nil
	}
	refers := slices.Contains(KeyTargets(object.Field(body, m.Key)), target.UUID)
	if !refers || !m.Owned(uuid, body, target) || m.Hides(body) {
		return nil
	}
	return m.Copy(uuid, body)
}

// Copy returns what an entry of a source object is, which is the same in all arrays. Entry says in which the object has
// one. Its strings have one form, also where those of an old record do not.
func (m *Mapping) Copy(uuid string, body []byte) []byte {
	values := object.Values(body, m.Fields)
	for i, value := range values {
		values[i] = object.Canonical(value)
	}
	size := len(`{"uuid":""}`) + len(uuid)
	for i, field := range m.Fields {
		size += len(`,"":`) + len(field) + len(values[i])
	}
	entry := object.AppendString(append(make([]byte, 0, size), `{"uuid":`...), uuid)
	for i, field := range m.Fields {
		if values[i] == nil || field == "uuid" {
			continue
		}
		entry = append(entry, ',')
		entry = object.AppendString(entry, field)
		entry = append(entry, ':')
		entry = append(entry, values[i]...)
	}
	return append(entry, '}')
}
