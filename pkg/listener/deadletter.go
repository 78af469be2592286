package listener

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
)

// The headers of a dead letter; its data is the event's.
const (
	HeaderReason   = "Belfry-Reason"   // the last error
	HeaderListener = "Belfry-Listener" // that could not handle it
	HeaderAttempts = "Belfry-Attempts" // number of attempts
	HeaderSubject  = "Belfry-Subject"  // of the event in the log
	HeaderSequence = "Belfry-Sequence" // of the event in the log
	HeaderTime     = "Belfry-Time"     // of the last attempt, RFC 3339
	HeaderRetries  = "Belfry-Retries"  // how often it was retried as a dead letter before
	HeaderOmitted  = "Belfry-Omitted"  // "true": the data was too large for a dead letter; the log has it
)

// maxReason is how much of an error a dead letter carries, in bytes.
const maxReason = 1024

const deadLetterTimeout = 10 * time.Second

// deadLetter publishes an event to stream DEAD, and ends its delivery only once
// the dead letter would survive a power failure; otherwise the event is
// redelivered.
func (r *runner) deadLetter(ctx context.Context, d *delivery, reason error) {
	m, e := d.msg, &d.Event
	ctx, cancel := context.WithTimeout(ctx, deadLetterTimeout)
	defer cancel()
	sequence := strconv.FormatUint(e.Sequence, 10)
	letter := &nats.Msg{
		Subject: bus.DeadPrefix + r.spec.Name,
		Data:    m.Data,
		Header: nats.Header{
			jetstream.MsgIDHeader: {r.letterID(d, sequence)},
			HeaderReason:          {header(reason.Error())},
			HeaderListener:        {r.spec.Name},
			HeaderAttempts:        {strconv.Itoa(e.Attempt)},
			HeaderSubject:         {d.subject},
			HeaderSequence:        {sequence},
			HeaderTime:            {time.Now().UTC().Format(time.RFC3339Nano)},
		},
	}
	if retries := m.Header.Get(HeaderRetries); retries != "" {
		letter.Header.Set(HeaderRetries, retries)
	}
	if int64(letter.Size()) > r.bus.JetStream().Conn().MaxPayload() {
		letter.Data = nil
		letter.Header.Set(HeaderOmitted, "true")
	}
	_, err := r.bus.JetStream().PublishMsg(ctx, letter)
	if err == nil {
		err = r.bus.Sync(ctx)
	}
	if err != nil {
		r.log.Warn("the dead letter of an event can't be stored; the event is retried", "event", e.ID, "error", err)
		r.nak(d, r.spec.Backoff(e.Attempt))
		return
	}
	r.log.Error("an event is now a dead letter", "event", e.ID, "name", e.Event,
		"store", e.Store, "uuid", e.UUID, "attempts", e.Attempt, "reason", reason)
	r.term(d)
}

// letterID deduplicates a dead letter that is published twice. Sequences restart
// with a log that was deleted; the time makes the ids differ.
func (r *runner) letterID(d *delivery, sequence string) string {
	return r.spec.Name + "." + sequence + "." + strconv.FormatInt(d.logged.UnixNano(), 10)
}

// header makes a text fit for a header: one line, of bounded length.
func header(text string) string {
	out := []byte(strings.ToValidUTF8(text[:min(len(text), maxReason)], ""))
	for i, c := range out {
		if c < ' ' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}
