package sse

import (
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Fresh is how long a look at the present serves.
const Fresh = fresh

// Verdicts is how many verdicts the window has of the events of an object.
func Verdicts(h *Hub, uuid string) (held int) {
	h.tail.mu.Lock()
	defer h.tail.mu.Unlock()
	for _, e := range h.tail.window {
		if e.judge == nil || e.judge.uuid != uuid {
			continue
		}
		if now := e.judge.now.Load(); now != nil {
			e.judge.mu.Lock()
			held += len(now.verdicts)
			e.judge.mu.Unlock()
		}
	}
	return held
}

// Judging returns what judges an event for a viewer; anew is about another
// event.
func Judging(b *testing.B, rules policy.Rules, body []byte) func(anew bool, v *Viewer) {
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
	from := newSource(s, nil)
	var j *judgement
	return func(anew bool, v *Viewer) {
		if anew {
			j = from.judgement(&event.Envelope{Event: event.StoreSaved, UUID: "n", Revision: stored.Revision, Object: body})
		}
		if _, err := j.allows(b.Context(), v); err != nil {
			b.Fatal(err)
		}
	}
}
