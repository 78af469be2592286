package sse

import (
	"encoding/binary"
	"slices"
	"strings"

	"belfry/internal/seal"
	"belfry/pkg/errs"
)

// Ids are positions in the log. The log also has events that a client may not see, such as those of logins and of other
// users. A client that could compare two ids would count them. So ids are sealed, and differ even for the same
// position.
//
// A position names the log and the event, in addition to the sequence. After a power cut, or with another log, another
// event can have the same sequence, and the client may not have seen the events before it.
//
// The ids of a stream that selects objects have its proof as well: see proof.
const (
	idPurpose  = "events"
	idSize     = 24
	provenSize = idSize + 16
	oldIDSize  = 8 // of the release before: only a sequence, which is not trusted

	// oldestID begins with the oldest event in the log.
	oldestID = "0"
)

// place is a position in a log.
type place struct {
	sequence uint64
	log      uint64 // the mark of the log
	event    uint64 // the mark of the event at the sequence; 0: it is not known
	proof    proof
}

// appendID begins a frame with the id from which the client would resume. A frame with
// nothing else is not delivered to a listener in the browser.
func (h *Hub) appendID(out []byte, at place) []byte {
	content := make([]byte, 0, provenSize)
	for _, n := range [...]uint64{at.sequence, at.log, at.event} {
		content = binary.BigEndian.AppendUint64(content, n)
	}
	if at.proof != (proof{}) {
		content = binary.BigEndian.AppendUint64(content, at.proof.rights)
		content = binary.BigEndian.AppendUint64(content, at.proof.since)
	}
	return append(append(append(out, "id: "...), h.opts.Sealer.Seal(idPurpose, content)...), '\n')
}

// parseID sets where a stream begins. An id that belfry could have sent, but can't open, is unknown: it is of an
// earlier release, or the key has changed. Any other text is errs.Invalid.
func (h *Hub) parseID(id string, into *filter) error {
	switch id {
	case "":
		return nil
	case oldestID:
		into.after = &place{}
		return nil
	}
	content, ok := h.opts.Sealer.Open(idPurpose, id)
	if ok && (len(content) == idSize || len(content) == provenSize) {
		number := func(i int) uint64 { return binary.BigEndian.Uint64(content[8*i:]) }
		into.after = &place{sequence: number(0), log: number(1), event: number(2)}
		if len(content) == provenSize {
			into.after.proof = proof{rights: number(3), since: number(4)}
		}
		return nil
	}
	number := strings.Trim(id, "0123456789") == "" && len(id) <= 20
	sealed := slices.Contains([]int{seal.EncodedLen(idSize), seal.EncodedLen(provenSize), seal.EncodedLen(oldIDSize)},
		len(id))
	if !number && (!sealed || strings.Trim(id, seal.Letters) != "") {
		return errs.New(errs.Invalid, "the last event id must be the id of an event of this stream, as it was sent; "+
			"0 starts with the oldest event in the log")
	}
	into.unknown = true
	return nil
}
