package sse

import (
	"bytes"
	"slices"
	"strconv"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// entry is an event of the log as clients are sent it. It is made once.
type entry struct {
	sequence uint64
	name     event.Name
	source   *source
	frame    []byte     // what is sent; nil when nobody hears it
	judge    *judgement // nil: everyone may hear it
	identity string     // uuid of a session or a user whose object this is about
	lost     bool       // no event: the log had lost what was before, up to sequence
}

// size is roughly how many bytes the window spends on an entry.
func (e *entry) size() int64 {
	size := 200 + len(e.frame) + len(e.identity)
	if e.judge != nil {
		size += 400 + 2*len(e.frame) // the object, and what it is made of
	}
	return int64(size)
}

// entry makes an entry of an event of the log.
func (h *Hub) entry(in *eventlog.Entry) *entry {
	e := &entry{sequence: in.Sequence}
	name, storeName, uuid, ok := eventlog.Parts(in.Subject)
	if !ok {
		return e
	}
	if slices.Contains(h.Identity, storeName) {
		e.identity = uuid
	}
	from := h.sources[storeName]
	if from == nil || !slices.Contains(Heard(), name) {
		return e
	}
	envelope, err := event.Decode(in.Data)
	if err != nil || envelope.Event != name || envelope.Store != storeName || envelope.UUID != uuid || envelope.Property != "" && from.hides(envelope.Property) {
		h.Logger.Debug("an event of the log is not told: it can't be read, or is not what its subject says", "sequence", in.Sequence, "error", err)
		return e
	}
	e.name, e.source = name, from
	e.judge = from.judgement(&envelope)
	// What is private today may not have been when the event was written.
	envelope.Object = from.store.Visible(store.Stored{Body: envelope.Object}).Body
	e.frame = frame(in.Sequence, &envelope)
	return e
}

// frame writes an event as it is sent.
func frame(sequence uint64, e *event.Envelope) []byte {
	out := make([]byte, 0, 256+len(e.Object)+len(e.Record))
	out = append(appendID(out, sequence), "event: "...)
	out = append(out, e.Event...)
	out = append(out, "\ndata: "...)
	begin := len(out)
	str := func(name, value string) {
		out = append(out, name...)
		out = object.AppendString(out, value)
	}
	raw := func(name string, value []byte) {
		if len(value) > 0 {
			out = append(append(out, name...), value...)
		}
	}
	str(`{"id":`, e.ID)
	str(`,"event":`, string(e.Event))
	str(`,"time":`, e.Time)
	str(`,"store":`, e.Store)
	str(`,"uuid":`, e.UUID)
	out = append(out, `,"revision":"`...)
	out = strconv.AppendUint(out, e.Revision, 10)
	out = append(out, '"')
	if e.ObjectOmitted {
		out = append(out, `,"objectOmitted":true`...)
	}
	raw(`,"object":`, e.Object)
	if e.Property != "" {
		str(`,"property":`, e.Property)
	}
	if e.Index != nil {
		out = append(out, `,"index":`...)
		out = strconv.AppendInt(out, int64(*e.Index), 10)
	}
	raw(`,"record":`, e.Record)
	out = append(out, '}')
	oneLine(out[begin:])
	return append(out, "\n\n"...)
}

// oneLine takes line breaks out of JSON: they are white space there. belfry
// writes none, but whoever may publish may have.
func oneLine(data []byte) {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return
	}
	for i, c := range data {
		if c == '\n' || c == '\r' {
			data[i] = ' '
		}
	}
}

// appendID begins a frame that tells a client where it is, which is where it
// would resume. A frame that holds nothing else calls no listener.
func appendID(out []byte, id uint64) []byte {
	return append(strconv.AppendUint(append(out, "id: "...), id, 10), '\n')
}

// appendNotice ends a frame about the stream itself: why it ends, or what was
// missed.
func appendNotice(out []byte, name, reason string) []byte {
	out = append(out, "event: "+name+"\ndata: {\"reason\":"...)
	return append(object.AppendString(out, reason), "}\n\n"...)
}
