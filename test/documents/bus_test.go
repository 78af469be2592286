package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

// recorder records the messages on subjects.
type recorder struct {
	conn     *nats.Conn
	received chan *nats.Msg
}

func listen(t *testing.T, conn *nats.Conn, subjects ...string) *recorder {
	t.Helper()
	r := &recorder{conn, make(chan *nats.Msg, 1<<16)}
	for _, subject := range subjects {
		if _, err := conn.ChanSubscribe(subject, r.received); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	return r
}

// all returns the messages received since the last call.
func (r *recorder) all(t *testing.T) (kept []*nats.Msg) {
	t.Helper()
	if err := r.conn.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	for len(r.received) > 0 {
		kept = append(kept, <-r.received)
	}
	return kept
}

// logged returns the messages of a stream.
func logged(t *testing.T, conn *nats.Conn, stream string) (all []jetstream.Msg) {
	t.Helper()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	count := int(s.CachedInfo().State.Msgs)
	for len(all) < count {
		m, err := c.Next(natsserver.Wait()...)
		if err != nil {
			t.Fatalf("%d of %d messages of %s: %v", len(all), count, stream, err)
		}
		all = append(all, m)
	}
	return all
}

// messagesConform validates everything that belfry has published on the bus against its
// AsyncAPI document: events in the log and live, requests and replies of operations and of
// interceptors, dead letters.
func messagesConform(t *testing.T, s *server, conn *nats.Conn, live, questions *recorder) {
	t.Helper()
	m := readMessages(t, s.URL)
	operate(m, conn)
	deadLetter(t, s)
	if err := s.Idle(); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"EVENTS", "DEAD"} {
		for _, message := range logged(t, conn, stream) {
			if !internal(message.Data()) {
				m.check(message.Subject(), message.Headers(), message.Data())
			}
		}
	}
	for _, message := range live.all(t) {
		if !internal(message.Data) {
			m.check(message.Subject, message.Header, message.Data)
		}
	}
	for _, message := range questions.all(t) {
		if !strings.Contains(message.Subject, ".ready.") {
			m.check(message.Subject, message.Header, message.Data)
		}
	}
	for _, answer := range []string{`{"allow":true}`, `{"refuse":{"message":"no"}}`,
		`{"refuse":{"status":409,"message":"no"}}`, `{"amend":{"a":null}}`} {
		m.one("an answer", m.Channels["askSoldThingsSaveCheckAnswer"], nil, []byte(answer))
	}
	for _, answer := range []string{`{}`, `{"allow":false}`, `{"refuse":{"status":200}}`, `{"allow":true,"amend":{}}`} {
		if m.is("Answer", nil, []byte(answer)) == "" {
			t.Errorf("%s is not a valid answer, but the document allows it", answer)
		}
	}
	unmet := slices.DeleteFunc(m.unmet(), func(kind string) bool {
		// This test does not cause every message: it has files and operations of some
		// stores only, and nothing is deleted in others.
		store := strings.HasPrefix(kind, "Books") || strings.HasPrefix(kind, "Authors") ||
			strings.HasPrefix(kind, "Notes")
		return !store &&
			!strings.HasSuffix(kind,
				"Books") && !slices.Contains([]string{"UsersRegister", "DeadLetter", "Fault", "Answer",
			"askUsersRegister", "askSoldThingsSave"}, kind)
	})
	unmet = slices.DeleteFunc(unmet, func(kind string) bool { return strings.HasPrefix(kind, "NotesFile") })
	if len(unmet) > 0 {
		t.Errorf("these messages were never published: %v", unmet)
	}
}

// operate requests every operation on a store, with valid and with invalid
// requests.
func operate(m *messages, conn *nats.Conn) {
	m.t.Helper()
	ask := func(op, body string, good bool, lines ...string) map[string]any {
		m.t.Helper()
		operation := m.Operations[op+"Books"]
		requests, replies := m.Channels[operation.Channel.name()], m.Channels[operation.Reply.Channel.name()]
		if requests == nil || replies == nil {
			m.t.Fatalf("there is no operation %sBooks", op)
		}
		message := &nats.Msg{Subject: *requests.Address, Data: []byte(body), Header: nats.Header(headers(lines...))}
		reply, err := natsserver.RequestMsg(conn, message)
		if err != nil {
			m.t.Fatalf("%s: %v", op, err)
		}
		if failed := reply.Header.Get("Nats-Service-Error-Code") != ""; failed == good {
			m.t.Errorf("%s %s: %v %s", op, body, reply.Header, reply.Data)
		}
		if good {
			m.one("a request to "+op, requests, message.Header, message.Data)
		}
		m.one("a reply to "+op, replies, reply.Header, reply.Data)
		return decode(m.t, reply.Data)
	}
	ask("save", `{"object":{"title":"Lady Susan","covers":7,"created":"never"}}`, true, "Idempotency-Key: a key",
		"Belfry-Actor: ada")
	ask("save", `{"object":{"title":"Sanditon"},"uuid":"sanditon"}`, true,
		"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	ask("save", `{"object":{"title":"Sanditon"},"uuid":"sanditon"}`, false)
	ask("save", `{"object":{"title":""}}`, false)
	ask("save", `{}`, false)
	revision, _ := ask("get", `{"uuid":"sanditon"}`, true)["revision"].(float64)
	ask("get", `{"uuid":"nothing"}`, false)
	ask("get", `{"uuid":"sanditon","more":1}`, false)
	ask("update", fmt.Sprintf(`{"object":{"year":1817},"uuid":"sanditon","revision":%.0f}`, revision), true)
	ask("update", fmt.Sprintf(`{"object":{"year":1818},"uuid":"sanditon","revision":%.0f}`, revision), false)
	ask("update", fmt.Sprintf(`{"object":{"year":1818},"uuid":"sanditon","revision":"%.0f"}`, revision), false)
	revision, _ = ask("get", `{"uuid":"sanditon"}`, true)["revision"].(float64)
	ask("update", fmt.Sprintf(`{"object":{"year":1818},"uuid":"sanditon","revision":"%.0f"}`, revision), true)
	ask("exists", `{"uuid":"sanditon"}`, true)
	ask("exists", `{"uuid":"nothing"}`, true)
	ask("list", `{}`, true)
	ask("list", `{"limit":1,"sort":"title"}`, true)
	ask("list", `{"sort":"unknown"}`, false)
	ask("delete", `{"uuid":"sanditon"}`, true)
	ask("delete", `{"uuid":"sanditon"}`, false)
}

// deadLetter makes a listener fail permanently on an event.
func deadLetter(t *testing.T, s *server) {
	t.Helper()
	b, err := bus.Open(t.Context(),
		bus.Options{Name: "documents", URL: s.Bus, Unmanaged: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.WithoutCancel(t.Context())) }()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{
			Name: "undertaker", Stores: []string{"Authors"}, Start: listener.StartAll(),
			Handler: func(context.Context, *listener.Event) error { return listener.Permanent(errors.New("never")) },
		})
	}()
	process.Eventually(t, time.Minute, func() error {
		info, err := jetstreamInfo(ctx, b, "DEAD")
		if err == nil && info == 0 {
			err = errors.New("there is no dead letter")
		}
		return err
	})
	stop()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func jetstreamInfo(ctx context.Context, b *bus.Bus, stream string) (uint64, error) {
	s, err := b.JetStream().Stream(ctx, stream)
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.State.Msgs, nil
}

// changedMessagesAreInvalid shows that the schema of an event refuses an event that is changed.
func changedMessagesAreInvalid(t *testing.T, s *server, conn *nats.Conn) {
	t.Helper()
	m := readMessages(t, s.URL)
	all := logged(t, conn, "EVENTS")
	event := all[slices.IndexFunc(all, func(e jetstream.Msg) bool {
		return decode(t, e.Data())["event"] == "Store.Saved" && decode(t, e.Data())["store"] == "Books"
	})]
	if why := m.is("BooksSaved", event.Headers(), event.Data()); why != "" {
		t.Fatalf("%s: %s", event.Data(), why)
	}
	for name, value := range map[string]any{
		"event": "Store.Updated", "store": "Authors", "revision": 7, "uuid": "a/b", "actor": 5, "ctx": nil,
		"object": []any{}, "objectOmitted": false,
	} {
		e := decode(t, event.Data())
		e[name] = value
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if m.is("BooksSaved", event.Headers(), text) == "" {
			t.Errorf("the document allows %s to be %v", name, value)
		}
	}
	for _, name := range []string{"id", "time", "origin", "ctx"} {
		e := decode(t, event.Data())
		delete(e, name)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if m.is("BooksSaved", event.Headers(), text) == "" {
			t.Errorf("the document allows %s to be absent", name)
		}
	}
}
