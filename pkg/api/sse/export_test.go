package sse

import (
	"context"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
)

// StateTTL is how long a state that was read is used.
const StateTTL = stateTTL

func (a *authorization) allows(ctx context.Context, v *Viewer) (bool, error) {
	d, err := a.decisionFor(ctx, v, nil, nil)
	return d.allowed, err
}

// Decisions returns how many decisions the window holds for the events of an object.
func Decisions(h *Hub, uuid string) (held int) {
	h.reader.mu.Lock()
	defer h.reader.mu.Unlock()
	for _, e := range h.reader.window {
		if e.auth == nil || e.auth.uuid != uuid {
			continue
		}
		if now := e.auth.current.Load(); now != nil {
			now.mu.Lock()
			held += len(now.decisions)
			now.mu.Unlock()
		}
	}
	return held
}

// Authorizer returns a function that authorizes an event for a viewer; with next it is
// another event.
func Authorizer(b *testing.B, rules policy.Rules, body []byte) func(next bool, v *Viewer) {
	b.Helper()
	folder, err := filestore.Open(b.TempDir(), filestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = folder.Close() })
	compiled, _ := policy.Compile(rules)
	s, err := store.Open(b.Context(), folder, store.Options{Name: "Notes", Policy: compiled})
	if err != nil {
		b.Fatal(err)
	}
	o, err := object.Parse(body)
	if err != nil {
		b.Fatal(err)
	}
	stored, err := s.Save(b.Context(), o, "n")
	if err != nil {
		b.Fatal(err)
	}
	from := newSource(s, true, nil, nil)
	var a *authorization
	return func(next bool, v *Viewer) {
		if next {
			a = from.authorization(1,
				&event.Envelope{Event: event.StoreSaved, UUID: "n", Revision: stored.Revision, Object: body})
		}
		if _, err := a.allows(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
}

// LimitRuleCost sets what the rules of each user may cost a second, and those of each address twice that.
func LimitRuleCost(h *Hub, perSecond int) { h.costs = newCosts(perSecond, 2*perSecond) }

// FilterResults returns how many results each filter of objects holds.
func FilterResults(h *Hub) (held []int) {
	h.filters.mu.Lock()
	defer h.filters.mu.Unlock()
	for _, f := range h.filters.all {
		f.mu.Lock()
		held = append(held, len(f.results))
		f.mu.Unlock()
	}
	return held
}
