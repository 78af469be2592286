package verify

import (
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Unnamed is how many objects have a value in the key of a mapping that names nothing. That is not a difference: such
// a value may be meant.
type Unnamed struct {
	Source  string `json:"source"`
	Key     string `json:"key"`
	Target  string `json:"target"`
	Objects int    `json:"objects"`
	UUID    string `json:"uuid"`   // the first of them
	Detail  string `json:"detail"` // why its key names nothing
}

func (u *Unnamed) add(more Unnamed) {
	if more.Objects > 0 && (u.Objects == 0 || more.UUID < u.UUID) {
		u.UUID, u.Detail = more.UUID, more.Detail
	}
	u.Objects += more.Objects
}

// unnamedIn counts those of a page.
func (c *check) unnamedIn(page []store.Stored) (found Unnamed) {
	for _, x := range page {
		if why := store.WhyUnnamed(object.Field(x.Body, c.m.Key)); why != "" {
			found.add(Unnamed{Objects: 1, UUID: x.UUID, Detail: why})
		}
	}
	return found
}
