package binary

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Add is the index of a binary that comes behind the others.
const Add = -1

// Place is where a binary is attached.
type Place struct {
	Store    string `json:"store"`
	UUID     string `json:"uuid"` // of the object
	Property string `json:"property"`
	Index    int    `json:"index"` // in the property's array; Add appends
}

func (p Place) String() string {
	if p.Index == Add {
		return fmt.Sprintf("%s/%s/%s/add", p.Store, p.UUID, p.Property)
	}
	return fmt.Sprintf("%s/%s/%s/%d", p.Store, p.UUID, p.Property, p.Index)
}

// storeOf finds the store of a place, and refuses what can't be a place.
func (s *Service) storeOf(p Place) (*store.Store, error) {
	st := s.Set.Store(p.Store)
	if st == nil || st == s.Contents {
		return nil, errs.New(errs.NotFound, "there is no store %q", p.Store)
	}
	return st, object.CheckUUID(p.UUID)
}

// propertySyntax is that of a property in the configuration: what begins with
// "_" is the server's.
var propertySyntax = regexp.MustCompile(`^[\pL\pN][\pL\pN_-]{0,99}$`)

// allowed reports whether binaries may be attached to a property.
func (s *Service) allowed(st *store.Store, property string) error {
	if s.Places != nil && !slices.Contains(s.Places[st.Name], property) {
		return errs.New(errs.NotFound, "no binaries can be attached to %q of %s", property, st.Name)
	}
	if !propertySyntax.MatchString(property) {
		return errs.New(errs.NotFound, "binaries can't be attached to %q: a property has 1 to 100 letters, digits, _ and -, and does not begin with _ or -", property)
	}
	owned := property == "uuid" || property == "created" || property == "updated" ||
		slices.Contains(st.Arrays, property) || slices.Contains(st.Private, property) || slices.Contains(st.ReadOnly, property)
	if owned {
		return errs.New(errs.NotFound, "%q of %s belongs to the server: no binaries can be attached to it", property, st.Name)
	}
	return nil
}

// attached returns the binaries of this service that a property holds: NotFound
// when it holds none, or when its client must not see it.
func (s *Service) attached(ctx context.Context, st *store.Store, o store.Stored, p Place) (holding, error) {
	h, err := decodeHolding(o, p.Property)
	if err != nil {
		return h, err
	}
	hidden := store.CallOf(ctx).Client && slices.Contains(st.Private, p.Property)
	if hidden || h.services[p.Property] != s.Name {
		return h, notThere(p)
	}
	return h, nil
}

// attachable is attached for a new binary: a property that holds nothing yet
// will do, and Conflict is reported when it holds something else.
func (s *Service) attachable(o store.Stored, p Place) (holding, error) {
	h, err := decodeHolding(o, p.Property)
	if err != nil {
		return h, err
	}
	switch service, taken := h.services[p.Property]; {
	case taken && service != s.Name:
		return h, errs.New(errs.Conflict, "%s of the object holds binaries of another service, %s", p.Property, service)
	case !taken && !h.empty:
		return h, errs.New(errs.Conflict, "%s of the object holds something else than binaries: remove that first, or choose another property", p.Property)
	}
	if p.Index != Add && (p.Index < 0 || p.Index > len(h.records)) {
		return h, errs.New(errs.Conflict, "%s of the object holds %d binaries: the index can be 0 to %d, not %d", p.Property, len(h.records), len(h.records), p.Index)
	}
	h.services[p.Property] = s.Name
	return h, nil
}

func notThere(p Place) error { return errs.New(errs.NotFound, "there is no binary at %s", p) }
