package sse

import (
	"encoding/binary"
	"strings"

	"belfry/internal/seal"
	"belfry/pkg/errs"
)

// Ids are positions in the log. The log also has events that a client may not see, such
// as those of logins and of other users: whoever could compare two ids would count
// them. So ids are sealed, and each is another text, also at one position.
const (
	idPurpose = "events"
	idSize    = 8

	// oldestID begins with the oldest event in the log.
	oldestID = "0"
)

// appendID begins a frame with the id from which the client would resume. A frame with
// nothing else is not delivered to a listener in the browser.
func (h *Hub) appendID(out []byte, sequence uint64) []byte {
	id := h.opts.Sealer.Seal(idPurpose, binary.BigEndian.AppendUint64(nil, sequence))
	return append(append(append(out, "id: "...), id...), '\n')
}

// parseID sets where a stream begins. An id that belfry could have sent, but that it can't
// open, is unknown: it is of an earlier release, or the key is another. It is
// errs.Invalid for any other text.
func (h *Hub) parseID(id string, into *filter) error {
	switch id {
	case "":
		return nil
	case oldestID:
		into.after = new(uint64)
		return nil
	}
	if content, ok := h.opts.Sealer.Open(idPurpose, id); ok && len(content) == idSize {
		sequence := binary.BigEndian.Uint64(content)
		into.after = &sequence
		return nil
	}
	number := strings.Trim(id, "0123456789") == "" && len(id) <= 20
	if !number && (len(id) != seal.EncodedLen(idSize) || strings.Trim(id, seal.Letters) != "") {
		return errs.New(errs.Invalid, "the last event id must be the id of an event of this stream, as it was sent; 0 starts with the oldest event in the log")
	}
	into.unknown = true
	return nil
}
