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

// State is the bounds of the log.
type State struct {
	First, Last uint64    // sequences; of an empty log, First is the next one
	Created     time.Time // of the stream; it differs after the stream was deleted and created again
}

// GetState reads the bounds of the log.
func GetState(ctx context.Context, js jetstream.JetStream) (State, error) {
	s, err := stream(ctx, js, bus.StreamEvents)
	if err != nil {
		return State{}, orDenied(js.Conn(), "$JS.API.STREAM.INFO."+bus.StreamEvents, err)
	}
	info := s.CachedInfo()
	first := info.State.FirstSeq
	if info.State.Msgs == 0 {
		first = info.State.LastSeq + 1
	}
	return State{First: first, Last: info.State.LastSeq, Created: info.Created}, nil
}

// Limit is the size of a page at most. A page has at least one event, however large.
type Limit struct{ Events, Bytes int }

// directGets begins the subjects of the direct get API, DirectGet is that of the log, which Page needs the permission
// for. A server before NATS 2.11 ignores the batch and replies with one message.
const (
	directGets = "$JS.API.DIRECT.GET."
	DirectGet  = directGets + bus.StreamEvents
)

// Page reads the events from a sequence on, as many as fit, without a consumer:
// one request, which any replica of the log may serve, including one that has
// not caught up yet. More reports whether further events follow.
func Page(ctx context.Context, conn *nats.Conn, first uint64, limit Limit) (page []*Entry, more bool, err error) {
	ctx, release := whileConnected(ctx, conn)
	defer release()
	if ctx.Err() != nil {
		return nil, false, noReply(ctx, ctx.Err()) // else the client buffers the request until it reconnects
	}
	more, err = directPage(ctx, conn, bus.StreamEvents, first, limit, func(m *nats.Msg) error {
		entry, err := direct(m)
		page = append(page, entry)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return page, more && len(page) > 0, nil
}

// repliesTo subscribes to the replies to a direct get of so many events, and the status that ends them. SubscribeSync
// would allocate a channel of half a megabyte: those who follow the log poll it several times a second.
func repliesTo(conn *nats.Conn, events int) (*nats.Subscription, error) {
	return conn.ChanSubscribe(conn.NewInbox(), make(chan *nats.Msg, events+1))
}

// directPage calls a function with each reply to a direct get of a page of a stream.
func directPage(ctx context.Context, conn *nats.Conn, stream string, first uint64, limit Limit,
	each func(*nats.Msg) error) (more bool, err error) {
	request, err := json.Marshal(map[string]any{"seq": max(first, 1), "next_by_subj": ">", "batch": limit.Events,
		"max_bytes": limit.Bytes})
	if err != nil {
		return false, err
	}
	replies, err := repliesTo(conn, limit.Events)
	if err != nil {
		return false, unavailable(err)
	}
	defer func() { _ = replies.Unsubscribe() }()
	subject := directGets + stream
	if err := conn.PublishRequest(subject, replies.Subject, request); err != nil {
		return false, unavailable(err)
	}
	for {
		m, err := replies.NextMsgWithContext(ctx)
		if err != nil {
			return false, orDenied(conn, subject, noReply(ctx, err))
		}
		if status := m.Header.Get("Status"); status != "" {
			return end(status, m)
		}
		batched := m.Header.Get("Nats-Num-Pending") != ""
		if err := each(m); err != nil { // which may change it
			return false, err
		}
		if !batched {
			return true, nil // a server without batched direct gets
		}
	}
}

// Last reads the newest event of a subject by a direct get. It reports errs.NotFound if
// the replica that replies has no event of the subject.
func Last(ctx context.Context, conn *nats.Conn, subject string) (*Entry, error) {
	return one(ctx, conn, subject, map[string]any{"last_by_subj": subject})
}

// Next reads the first event of a subject that has at least a sequence, as Last reads the newest.
func Next(ctx context.Context, conn *nats.Conn, subject string, sequence uint64) (*Entry, error) {
	return one(ctx, conn, subject, map[string]any{"next_by_subj": subject, "seq": sequence})
}

func one(ctx context.Context, conn *nats.Conn, subject string, which map[string]any) (*Entry, error) {
	ctx, release := whileConnected(ctx, conn)
	defer release()
	request, err := json.Marshal(which)
	if err != nil {
		return nil, err
	}
	m, err := conn.RequestWithContext(ctx, DirectGet, request)
	if err != nil {
		return nil, orDenied(conn, DirectGet, noReply(ctx, err))
	}
	switch status := m.Header.Get("Status"); status {
	case "":
		return direct(m)
	case "404":
		return nil, errs.New(errs.NotFound, "the log has no such event %s", subject)
	default:
		_, err := end(status, m)
		return nil, err
	}
}

var errDisconnected = errs.New(errs.Unavailable, "the bus is unavailable: the connection is lost")

// whileConnected derives a context that is also canceled when the connection is
// lost: a reply in flight is not delivered after a reconnect.
func whileConnected(ctx context.Context, conn *nats.Conn) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := conn.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	if !conn.IsConnected() {
		cancel(errDisconnected)
	}
	go func() {
		if _, ok := <-lost; ok {
			cancel(errDisconnected)
		}
	}()
	return ctx, func() {
		conn.RemoveStatusListener(lost)
		cancel(nil)
	}
}

// noReply returns the reason why there was no reply.
func noReply(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errDisconnected) {
		return errDisconnected
	}
	return unavailable(err)
}

// end reads the status message that ends a reply.
func end(status string, m *nats.Msg) (more bool, err error) {
	switch status {
	case "204":
		return m.Header.Get("Nats-Num-Pending") != "0", nil
	case "404":
		return false, nil // no event from that sequence on
	case "503":
		return false, errs.New(errs.Unavailable, "the bus has no event log: create it with `belfry bus setup`")
	}
	return false, errs.New(errs.Unavailable, "the event log replied with status %s: %s", status,
		m.Header.Get("Description"))
}

func direct(m *nats.Msg) (*Entry, error) {
	sequence, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the reply of the event log has no sequence")
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get("Nats-Time-Stamp"))
	return &Entry{Sequence: sequence, Time: at, Subject: m.Header.Get("Nats-Subject"), Data: m.Data},
		errs.Wrap(err, errs.Unavailable, "the reply of the event log has no time")
}

// orDenied returns errs.Denied in place of an error that a missing
// permission caused: the server reports it to the connection, not to the request.
func orDenied(conn *nats.Conn, subject string, err error) error {
	last := conn.LastError()
	if !errors.Is(last, nats.ErrPermissionViolation) ||
		!strings.Contains(strings.ToLower(last.Error()), `"`+strings.ToLower(subject)+`"`) {
		return err
	}
	return errs.Wrap(err,
		errs.Denied, "the bus does not let this user publish to %s, so the stream can't be read: allow it, as "+
			"nats.conf does for the log and the front, and docs/reference/bus.md says for backups", subject)
}
