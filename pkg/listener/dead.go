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

// The headers of a dead letter, whose data is the event as it was.
const (
	HeaderReason   = "Belfry-Reason"   // the last error
	HeaderListener = "Belfry-Listener" // who could not handle it
	HeaderAttempts = "Belfry-Attempts" // how often it was tried
	HeaderSubject  = "Belfry-Subject"  // where the log holds it
	HeaderSequence = "Belfry-Sequence" // and at which sequence
	HeaderTime     = "Belfry-Time"     // when it was given up, RFC 3339
	HeaderRetries  = "Belfry-Retries"  // how often it came back from the dead letters before
	HeaderOmitted  = "Belfry-Omitted"  // "true": the data was too large for a letter; the log has it
)

// maxReason is how much of an error a dead letter carries, in bytes.
const maxReason = 1024

const buryTimeout = 10 * time.Second

// bury puts an event with the dead letters. Only when it is safe there does it
// leave the listener; otherwise it comes again.
func (r *runner) bury(ctx context.Context, d *delivery, reason error) {
	m, e := d.msg, &d.Event
	ctx, cancel := context.WithTimeout(ctx, buryTimeout)
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
		r.log.Warn("an event can't be put with the dead letters; it is tried again", "event", e.ID, "error", err)
		r.giveBack(d, r.spec.Backoff(e.Attempt))
		return
	}
	r.log.Error("an event is with the dead letters", "event", e.ID, "name", e.Event,
		"store", e.Store, "uuid", e.UUID, "attempts", e.Attempt, "reason", reason)
	r.end(d)
}

// letterID is what a repeated letter is recognised by. Sequences begin anew
// with a log that was deleted; the time makes them differ.
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
