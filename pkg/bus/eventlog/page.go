package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// State is what the log holds.
type State struct {
	First, Last uint64    // sequences; of an empty log First is the one to come
	Created     time.Time // of the log itself: another time is another log
}

// Look asks the bus what the log holds.
func Look(ctx context.Context, js jetstream.JetStream) (State, error) {
	s, err := stream(ctx, js, bus.StreamEvents)
	if err != nil {
		return State{}, allowed(js.Conn(), "$JS.API.STREAM.INFO."+bus.StreamEvents, err)
	}
	info := s.CachedInfo()
	first := info.State.FirstSeq
	if info.State.Msgs == 0 {
		first = info.State.LastSeq + 1
	}
	return State{First: first, Last: info.State.LastSeq, Created: info.Created}, nil
}

// Most bounds a page. One event is always in it, however large.
type Most struct{ Events, Bytes int }

// directGet is where messages of the log can be asked for. A server before
// NATS 2.11 answers with one at a time.
const directGet = "$JS.API.DIRECT.GET." + bus.StreamEvents

// Page reads the events from a sequence on, as many as fit, without making a
// consumer: one request, which any server that has the log may answer, the one
// that is a little behind as well. More says that others follow.
func Page(ctx context.Context, conn *nats.Conn, first uint64, most Most) (page []*Entry, more bool, err error) {
	ctx, release := whileConnected(ctx, conn)
	defer release()
	if ctx.Err() != nil {
		return nil, false, silent(ctx, ctx.Err()) // else the client keeps the request for the next connection
	}
	request, err := json.Marshal(map[string]any{"seq": max(first, 1), "batch": most.Events, "max_bytes": most.Bytes})
	if err != nil {
		return nil, false, err
	}
	answers, err := conn.SubscribeSync(conn.NewInbox())
	if err != nil {
		return nil, false, unavailable(err)
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := conn.PublishRequest(directGet, answers.Subject, request); err != nil {
		return nil, false, unavailable(err)
	}
	for {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, false, allowed(conn, directGet, silent(ctx, err))
		}
		if status := m.Header.Get("Status"); status != "" {
			more, err = end(status, m)
			return page, more && len(page) > 0, err
		}
		entry, err := direct(m)
		if err != nil {
			return nil, false, err
		}
		page = append(page, entry)
		if m.Header.Get("Nats-Num-Pending") == "" {
			return page, true, nil // a server that knows no pages
		}
	}
}

// Last reads the newest event of a subject, in the same way. NotFound when the
// log has none, or whoever answers has none yet.
func Last(ctx context.Context, conn *nats.Conn, subject string) (*Entry, error) {
	ctx, release := whileConnected(ctx, conn)
	defer release()
	request, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return nil, err
	}
	m, err := conn.RequestWithContext(ctx, directGet, request)
	if err != nil {
		return nil, allowed(conn, directGet, silent(ctx, err))
	}
	switch status := m.Header.Get("Status"); status {
	case "":
		return direct(m)
	case "404":
		return nil, errs.New(errs.NotFound, "the log has no event %s", subject)
	default:
		_, err := end(status, m)
		return nil, err
	}
}

var errAway = errs.New(errs.Unavailable, "the bus is away")

// whileConnected ends a context when the connection is lost as well: an answer
// that was under way will not come, and the next connection tells nothing of it.
func whileConnected(ctx context.Context, conn *nats.Conn) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := conn.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	if !conn.IsConnected() {
		cancel(errAway)
	}
	go func() {
		if _, told := <-lost; told {
			cancel(errAway)
		}
	}()
	return ctx, func() {
		conn.RemoveStatusListener(lost)
		cancel(nil)
	}
}

// silent says why no answer came.
func silent(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errAway) {
		return errAway
	}
	return unavailable(err)
}

// end reads what an answer ends with.
func end(status string, m *nats.Msg) (more bool, err error) {
	switch status {
	case "204":
		return m.Header.Get("Nats-Num-Pending") != "0", nil
	case "404":
		return false, nil // nothing there, or not yet
	case "503":
		return false, errs.New(errs.Unavailable, "the bus has no log of events")
	}
	return false, errs.New(errs.Unavailable, "the log answers %s %s", status, m.Header.Get("Description"))
}

func direct(m *nats.Msg) (*Entry, error) {
	sequence, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the log's answer has no sequence")
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
	return &Entry{Sequence: sequence, Time: at, Subject: m.Header.Get("Nats-Subject"), Data: m.Data},
		errs.Wrap(err, errs.Unavailable, "the log's answer has no time")
}

// allowed says so where silence means that the user lacks a right: the bus
// tells that to the connection and not to who asks.
func allowed(conn *nats.Conn, subject string, err error) error {
	last := conn.LastError()
	if !errors.Is(last, nats.ErrPermissionViolation) || !strings.Contains(strings.ToLower(last.Error()), `"`+strings.ToLower(subject)+`"`) {
		return err
	}
	return errs.Wrap(err, errs.Denied, "the bus does not let this user publish to %s, so the log can't be read: allow it, as nats.conf does for the front", subject)
}
