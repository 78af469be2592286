package sse

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"belfry/pkg/bus/eventlog"
)

// proof is what the ids of a stream that selects objects prove besides the position: with which rights the client has
// followed the stream, and since when.
//
// A client learns that it may no longer get an object, by a message with the uuid. It must not learn of objects that it
// was never allowed to get. The present rights do not tell: the user may have got them after the object became private,
// or another configuration may be in force. So such a message is sent only if all of this holds:
//
//   - The event is after since. The client had the same rights then: the same user, unchanged, the same session, and
//     the same rules of the stores. The id says so, which only belfry can write.
//   - The rules held for the object as it was before, at the time of the write.
//   - The user has not changed since the write, if its event was published late.
//
// So the user could get the object until then. The message does not depend on the filter: the content of an object that
// is private now is not compared with anything.
//
// When the rights change, objects can leave the view without any event. The client is sent a reset then: it reads the
// objects again, and since is the end of the log at that time.
type proof struct {
	rights uint64 // identifies the rights of the client; never 0
	since  uint64 // the sequence after which the client had these rights
}

// rightsOf identifies the rights of a viewer in the stores of a filter.
func (h *Hub) rightsOf(f *filter, v *Viewer) uint64 {
	sum := sha256.New()
	for _, name := range h.names {
		from := h.sources[name]
		if f.stores != nil && !f.stores[from] {
			continue
		}
		key := ""
		if len(from.ops) > 0 || len(from.fields.names) > 0 {
			key = v.Key
		}
		_, _ = fmt.Fprintf(sum, "%q %q %q\n", name, from.rules, key) // never fails
	}
	return binary.BigEndian.Uint64(sum.Sum(nil)) | 1
}

// checkRights notes whether the rights of the client have changed.
func (s *stream) checkRights() {
	if !s.selects {
		return
	}
	if rights := s.hub.rightsOf(&s.filter, s.viewer); rights != s.proof.rights {
		s.proof.rights, s.regained = rights, s.proof.rights != 0
	}
}

// proveFromNow makes the end of the log the position since which the client has its rights.
func (s *stream) proveFromNow(ctx context.Context) error {
	if !s.selects {
		return nil
	}
	state, err := eventlog.GetState(ctx, s.hub.opts.Bus.JetStream())
	if err == nil {
		s.proof.since, s.regained = state.Last, false
	}
	return err
}

// resetRights sends a client the reset that follows a change of its rights.
func (s *stream) resetRights(ctx context.Context) (next, error) {
	if err := s.proveFromNow(ctx); err != nil {
		return retryLater, nil //nolint:nilerr // the bus is unavailable
	}
	return proceed, s.notice("reset", rightsText)
}
