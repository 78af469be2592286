package fill

import (
	"context"
	"slices"

	"belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// textRule identifies the form in which strings are copied. Change it with that form.
const textRule = "strings in one form"

// escapes adds entries that a previous release left out as too large because it counted the escapes of the client. It
// writes their objects with an event, as if a client had sent them now. So no entry stays behind if the process ends
// and the object moves meanwhile.
func escapes(s *store.Store) *work {
	maps := s.Maps()
	return &work{
		store: s, page: 500, kind: walk.Upgrade, called: "store", what: "entries that were too large for their escapes alone",
		begins:     "strings have one form: looking for objects whose entries were too large for their escapes alone",
		definition: hashOf(textRule),
		needs: func(o store.Stored) bool {
			return slices.ContainsFunc(maps, func(m store.Mapping) bool { return m.FitsNow(o.UUID, o.Body) })
		},
		fill: func(ctx context.Context, o store.Stored, _ func(objects int) error) error {
			return mapping.Rewrite(ctx, s, o.UUID)
		},
	}
}
