package sse

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// entry is an event of the log as it is sent to clients. It is encoded once.
type entry struct {
	sequence uint64
	mark     uint64 // of the event; 0 for a gap
	name     event.Name
	source   *source
	frame    []byte         // the message; nil if the event is not streamed
	property string         // of the binary that the event is about; "" for none
	auth     *authorization // nil: everyone may receive it
	identity string         // uuid of a session or a user whose object this is about
	gap      string         // the reason to send if the log no longer has the events up to sequence; "" for an event

	idSize               int // of the id at the beginning of frame
	objectAt, objectSize int // where the object is in frame

	// For streams that select objects:
	uuid     string
	revision uint64
	previous []byte         // former values of the changed fields, encoded; nil: none
	added    []string       // the fields that were absent before
	partial  bool           // previous lacks some
	present  *authorization // reads the present object for an event without one; else nil
}

// size is the approximate memory of an entry in the window, in bytes.
func (e *entry) size() int64 {
	size := 300 + len(e.frame) + len(e.identity) + len(e.previous)
	for _, name := range e.added {
		size += 16 + len(name)
	}
	if e.auth != nil {
		size += 400 + 2*len(e.frame) // the decoded object
	}
	return int64(size)
}

// entry makes an entry of an event of the log with a mark.
func (h *Hub) entry(log uint64, in *eventlog.Entry) *entry {
	e := &entry{sequence: in.Sequence, mark: in.Mark()}
	name, storeName, uuid, ok := eventlog.ParseSubject(in.Subject)
	if !ok {
		return e
	}
	if name.IsAuth() {
		h.accountEntry(e, log, name, storeName, uuid, in)
		return e
	}
	if slices.Contains(h.opts.Identity, storeName) {
		e.identity = uuid
	}
	from := h.sources[storeName]
	if from == nil || !slices.Contains(EventNames(), name) {
		return e
	}
	envelope, ok := h.decode(in, name, storeName, uuid)
	if !ok || envelope.Property != "" && from.hides(envelope.Property) {
		return e
	}
	e.name, e.source, e.property = name, from, envelope.Property
	e.auth = from.authorization(in.Sequence, &envelope)
	// A field that is private now may not have been private when the event was written.
	envelope.Object = from.store.Rules().Visible(envelope.Object)
	id := h.appendID(make([]byte, 0, frameSize+len(envelope.Object)+len(envelope.Record)),
		place{sequence: in.Sequence, log: log, event: e.mark})
	e.idSize = len(id)
	e.frame, e.objectAt = frame(id, &envelope)
	e.objectSize = len(envelope.Object)
	e.setFormer(in.Sequence, &envelope)
	return e
}

// decode decodes an event, which has to match its subject.
func (h *Hub) decode(in *eventlog.Entry, name event.Name, storeName, uuid string) (envelope event.Envelope, ok bool) {
	envelope, err := event.Decode(in.Data)
	if err != nil || envelope.Event != name || envelope.Store != storeName || envelope.UUID != uuid {
		h.opts.Logger.Debug("an event of the log is not streamed: it can't be decoded, or does not match its subject",
			"sequence", in.Sequence, "error", err)
		return envelope, false
	}
	return envelope, true
}

// frameSize is about the size of a frame without its object and record.
const frameSize = 320

// frame appends an event, as it is sent, to its id, and returns where the object is.
func frame(out []byte, e *event.Envelope) (sent []byte, objectAt int) {
	out = append(out, "event: "...)
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
	objectAt = len(out) - len(e.Object)
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
	return append(out, "\n\n"...), objectAt
}

// oneLine replaces line breaks in JSON, where they are white space, by spaces. belfry
// writes none, but other publishers may.
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

// appendNotice ends a frame with an event about the stream itself: why it ends, or that
// events were missed.
func appendNotice(out []byte, name, reason string) []byte {
	out = append(out, "event: "+name+"\ndata: {\"reason\":"...)
	return append(object.AppendString(out, reason), "}\n\n"...)
}

// entries makes the entries of a page of a log, which has the events after a sequence. gap is the entry before it, nil
// for none. If events between others were removed from the log, an entry says so.
func (h *Hub) entries(log, after uint64, gap *entry, page []*eventlog.Entry) []*entry {
	all := make([]*entry, 0, len(page)+1)
	if gap != nil {
		all = append(all, gap)
		after = gap.sequence
	}
	for _, e := range page {
		if e.Sequence > after+1 {
			all = append(all, &entry{sequence: e.Sequence - 1, gap: removedText})
		}
		all = append(all, h.entry(log, e))
		after = e.Sequence
	}
	return all
}

// gap returns the entry for the events after a sequence that the log no longer has; nil
// for none.
func (h *Hub) gap(ctx context.Context, after uint64) (*entry, error) {
	state, err := eventlog.GetState(ctx, h.opts.Bus.JetStream())
	if err != nil || state.First <= after+1 {
		return nil, err
	}
	return &entry{sequence: state.First - 1, gap: lostText}, nil
}
