package binary

import (
	"context"
	"fmt"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Append is the index with which an upload appends a binary.
const Append = -1

// Place is where a binary is attached to an object.
type Place struct {
	Store    string `json:"store"`
	UUID     string `json:"uuid"` // of the object
	Property string `json:"property"`
	Index    int    `json:"index"` // in the property's array; Append adds one
}

func (p Place) String() string {
	if p.Index == Append {
		return fmt.Sprintf("%s/%s/%s/add", p.Store, p.UUID, p.Property)
	}
	return fmt.Sprintf("%s/%s/%s/%d", p.Store, p.UUID, p.Property, p.Index)
}

// storeOf returns the store of a place: NotFound if it does not exist, Invalid if the
// uuid is malformed.
func (s *Service) storeOf(p Place) (*store.Store, error) {
	st := s.set.Store(p.Store)
	if st == nil || st == s.entries.store {
		return nil, errs.New(errs.NotFound, "there is no store %q", p.Store)
	}
	return st, object.CheckUUID(p.UUID)
}

// checkProperty returns NotFound when binaries can't be attached to a property.
func (s *Service) checkProperty(st *store.Store, property string) error {
	if s.properties != nil && !slices.Contains(s.properties[st.Name()], property) {
		return errs.New(errs.NotFound, "no binaries can be attached to %q of %s", property, st.Name())
	}
	if !object.ValidProperty(property) {
		return errs.New(errs.NotFound, "binaries can't be attached to %q: a property has 1 to %d letters, digits, _ "+
			"and -, and does not begin with _ or -", property, object.MaxProperty)
	}
	if st.Rules().ServerOwned(property) {
		return errs.New(errs.NotFound, "%q of %s belongs to the server: no binaries can be attached to it", property,
			st.Name())
	}
	return nil
}

// attached returns the records of this service in a property: NotFound if the property
// has no records, or if the client must not see it.
func (s *Service) attached(ctx context.Context, st *store.Store, o store.Stored, p Place) (recordList, error) {
	l, err := decodeRecords(o, p.Property)
	if err != nil {
		return l, err
	}
	may, err := st.MayRead(ctx, o, p.Property)
	if err != nil {
		return l, err
	}
	if !may || l.services[p.Property] != s.name {
		return l, notFound(p)
	}
	return l, nil
}

// attachable returns the records to which a binary can be added: none when the
// property is empty, Conflict when its value is something else.
func (s *Service) attachable(o store.Stored, p Place) (recordList, error) {
	l, err := decodeRecords(o, p.Property)
	if err != nil {
		return l, err
	}
	switch service, taken := l.services[p.Property]; {
	case taken && service != s.name:
		return l, errs.New(errs.Conflict, "%s of the object has binaries of another service, %s", p.Property, service)
	case !taken && !l.empty:
		return l, errs.New(errs.Conflict,
			"%s of the object has a value that is not an array of binaries: remove it first, or use another property",
			p.Property)
	}
	if p.Index != Append && (p.Index < 0 || p.Index > len(l.records)) {
		return l, errs.New(errs.Conflict, "%s of the object has %d binaries: the index can be 0 to %d, not %d",
			p.Property, len(l.records), len(l.records), p.Index)
	}
	l.services[p.Property] = s.name
	return l, nil
}

func notFound(p Place) error { return errs.New(errs.NotFound, "there is no binary at %s", p) }
