package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/interceptor"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

const (
	// listenerUser is the user of the sample listener in nats.conf.
	listenerUser = "{user: listener, password: $BELFRY_LISTENER_PASSWORD, permissions: $LISTENER}"
	// unlimited is that user with all permissions in its account.
	unlimited = "{user: listener, password: $BELFRY_LISTENER_PASSWORD}, {user: nobody, password: nobody, " +
		"permissions: $LISTENER}"
)

// conf is the text of nats.conf with texts replaced, each of which must be there.
func conf(t *testing.T, replace ...string) string {
	t.Helper()
	data, err := os.ReadFile("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("nats.conf has no %q", replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

// sharedAccount is nats.conf with the sample listener in belfry's account, as in
// earlier releases.
func sharedAccount(t *testing.T) string {
	t.Helper()
	return conf(t, "users: ["+listenerUser+"]", "users: [{user: nobody, password: nobody}]", "{user: client,",
		listenerUser+"\n      {user: client,")
}

// ownAccount is nats.conf with all permissions for the sample listener: only its
// account keeps it from anything.
func ownAccount(t *testing.T) string {
	t.Helper()
	return conf(t, listenerUser, unlimited)
}

// serveText starts a server from the text of a configuration, with 10 events in
// the log and a listener beside the sample one.
func serveText(t *testing.T, text string) (url string, admin *bus.Bus) {
	t.Helper()
	passwords(t, t.TempDir())
	url = serve(t, file(t, text))
	prepare(t, url, listenerSpec("listener"), listenerSpec("other"))
	admin = as(t, url, "admin", slog.New(slog.DiscardHandler))
	if err := admin.Publish(t.Context(), readable("e", 10)); err != nil {
		t.Fatal(err)
	}
	return url, admin
}

// listenerRequests are what a listener may send, by what the server replies to it.
var listenerRequests = map[string]struct{ subject, body string }{
	"the state of its consumer":    {consumer + "INFO.EVENTS.listener", ""},
	"an event":                     {consumer + "MSG.NEXT.EVENTS.listener", `{"batch":1}`},
	"nothing":                      {consumer + "MSG.NEXT.RETRY.listener", `{"batch":1,"no_wait":true}`},
	"that a dead letter is stored": {"dead.listener", "{}"},
	"that a heartbeat arrived":     {"$JS.ACK.EVENTS.listener.1.1.1.1.1", "+WPI"},
}

// attack has the server reply to all of a listener's requests on subjects of the
// listener's choice, and waits for other replies, which come after those.
func attack(t *testing.T, listener *nats.Conn, replies ...string) {
	t.Helper()
	for _, reply := range replies {
		for _, r := range listenerRequests {
			if err := listener.PublishRequest(r.subject, reply, []byte(r.body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, r := range listenerRequests {
		if _, err := natsserver.Request(listener, r.subject, []byte(r.body)); err != nil {
			t.Errorf("the listener does not get %s: %v", what, err)
		}
	}
}

// The server sends its reply to any subject that a request names, with nobody's
// permissions. In an account of its own a listener names subjects of that account.
func TestAListenerCannotHaveRepliesStoredOrSentToOthers(t *testing.T) {
	live := []string{"Store.Saved", "Register", "applied.x.1", "_INBOX_front.x", "intercept.save.Books.other",
		"store.Books.delete", "listeners.confirm", "mapping.workers.x"}
	kept := []string{"events.1.Store.Saved.Users.u", "dead.other", "retry.other"}
	for name, c := range map[string]struct {
		conf string
		harm []string
	}{
		"in an account of its own": {ownAccount(t), nil},
		// What the account is for: without it the same requests do harm.
		"in belfry's account": {sharedAccount(t), slices.Sorted(slices.Values(slices.Concat(live, kept)))},
	} {
		t.Run(name, func(t *testing.T) {
			url, admin := serveText(t, c.conf)
			received := make(chan *nats.Msg, 1000)
			for _, subject := range live {
				if _, err := admin.Conn().ChanSubscribe(subject, received); err != nil {
					t.Fatal(err)
				}
			}
			if err := admin.Conn().FlushTimeout(kit.Limit); err != nil {
				t.Fatal(err)
			}
			listener, _ := connectAs(t, url, "listener")
			attack(t, listener, slices.Concat(live, kept)...)
			if err := admin.Conn().FlushTimeout(kit.Limit); err != nil {
				t.Fatal(err)
			}
			harm := map[string]bool{}
			for len(received) > 0 {
				harm[(<-received).Sub.Subject] = true // the message has the subject of the event that it is
			}
			for _, name := range []string{bus.StreamEvents, bus.StreamDead, bus.StreamRetry} {
				for _, subject := range subjectsOf(t, admin, name) {
					if slices.Contains(kept, subject) {
						harm[subject] = true
					}
				}
			}
			if found := slices.Sorted(maps.Keys(harm)); !slices.Equal(found, c.harm) {
				t.Errorf("replies arrive at\n%q, want\n%q", found, c.harm)
			}
		})
	}
}

// subjectsOf are the subjects of all messages of a stream.
func subjectsOf(t *testing.T, b *bus.Bus, name string) []string {
	t.Helper()
	s, err := b.JetStream().Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(maps.Keys(info.State.Subjects))
}

// A reply without a body is a valid request to the API, and the server executes it.
func TestAListenerCannotHaveRepliesExecutedByTheServer(t *testing.T) {
	acts := []string{consumer + "DELETE.EVENTS.other", stream + "PURGE.EVENTS", stream + "DELETE.EVENTS"}
	t.Run("in an account of its own", func(t *testing.T) {
		url, admin := serveText(t, ownAccount(t))
		listener, _ := connectAs(t, url, "listener")
		for _, act := range acts {
			arrived, err := listener.SubscribeSync(act)
			if err != nil {
				t.Fatal(err)
			}
			attack(t, listener, act)
			for what := range listenerRequests {
				if _, err := natsserver.Next(arrived); err != nil {
					t.Errorf("%s as a request on %s does not stay in the account: %v", what, act, err)
				}
			}
		}
		if n := stored(t, admin); n != 10 {
			t.Errorf("%d events are stored, want 10", n)
		}
		consumerInfo(t, admin, "other")
	})
	t.Run("in belfry's account they are executed", func(t *testing.T) {
		url, admin := serveText(t, sharedAccount(t))
		listener, _ := connectAs(t, url, "listener")
		for _, act := range acts[:2] {
			r := listenerRequests["nothing"]
			if err := listener.PublishRequest(r.subject, act, []byte(r.body)); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, func() bool {
			_, err := admin.JetStream().Consumer(t.Context(), bus.StreamEvents, "other")
			return errors.Is(err, jetstream.ErrConsumerNotFound)
		})
		eventually(t, func() bool { return stored(t, admin) == 0 })
	})
}

// The server takes no acknowledgement as the subject of a reply, in no account.
func TestAListenerCannotAcknowledgeForOthersByReplies(t *testing.T) {
	for name, conf := range map[string]string{"in an account of its own": ownAccount(t),
		"in belfry's account": sharedAccount(t)} {
		t.Run(name, func(t *testing.T) {
			url, admin := serveText(t, conf)
			first := take(t, admin.Conn(), "other")
			listener, refusals := connectAs(t, url, "listener")
			attack(t, listener, first.Reply)
			for range listenerRequests {
				if err := <-refusals; !errors.Is(err, nats.ErrPermissionViolation) {
					t.Error(err)
				}
			}
			if info := consumerInfo(t, admin, "other"); info.NumAckPending != 1 || info.AckFloor.Stream != 0 {
				t.Errorf("the other listener has %d events in flight, acknowledged to %d", info.NumAckPending,
					info.AckFloor.Stream)
			}
		})
	}
}

// The account alone keeps a listener from what its permissions forbid.
func TestTheAccountOfAListenerHasNothingOfOthers(t *testing.T) {
	url, admin := serveText(t, ownAccount(t))
	first := take(t, admin.Conn(), "other")
	listener, _ := connectAs(t, url, "listener")
	everything, err := listener.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listener.QueueSubscribeSync("intercept.*.*.other", "interceptor-other"); err != nil {
		t.Fatal(err)
	}
	if err := listener.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}

	for _, subject := range []string{"Store.Saved", "Register", "_INBOX_front.x", "applied.x.1",
		"intercept.save.Books.other", "$JS.EVENT.ADVISORY.x", "$SYS.x", "dead.other"} {
		if err := admin.Conn().Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := natsserver.Request(admin.Conn(), "intercept.save.Books.other", []byte("{}")); !errors.Is(err,
		nats.ErrNoResponders) {
		t.Errorf("a request to another interceptor: %v", err)
	}
	own, err := natsserver.Request(listener, consumer+"MSG.NEXT.EVENTS.listener", []byte(`{"batch":1}`))
	if err != nil || own.Reply == "" {
		t.Fatal(own, err)
	}
	for {
		m, err := natsserver.Next(everything)
		if err != nil {
			t.Fatal(err)
		}
		if m.Reply == own.Reply { // sent after the messages above
			break
		}
		if m.Subject != consumer+"MSG.NEXT.EVENTS.listener" {
			t.Errorf("the listener receives %s", m.Subject)
		}
	}

	requests := []string{first.Reply}
	for _, acts := range []map[string][]string{forbidden, forging, working, listening, reading} {
		for _, subjects := range acts {
			requests = append(requests, slices.DeleteFunc(slices.Clone(subjects), func(s string) bool {
				return strings.HasPrefix(s, "store.") || s == "dead.listener" || s == "$JS.API.INFO" ||
					strings.Contains(s, ".listener.") && strings.HasPrefix(s, "$JS.ACK") ||
					strings.HasSuffix(s, ".listener") &&
						(strings.Contains(s, ".INFO.") || strings.Contains(s, "MSG.NEXT"))
			})...)
		}
	}
	// It would be a responder that does not reply.
	if err := errors.Join(everything.Unsubscribe(), listener.FlushTimeout(kit.Limit)); err != nil {
		t.Fatal(err)
	}
	for _, subject := range requests {
		if m, err := natsserver.Request(listener, subject, []byte("+TERM")); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("a request on %s gets %v, %v", subject, m, err)
		}
	}
	if info := consumerInfo(t, admin, "other"); info.NumAckPending != 1 || info.NumPending != 9 {
		t.Errorf("the other listener has %d events in flight and %d pending", info.NumAckPending, info.NumPending)
	}
	if n := stored(t, admin); n != 10 {
		t.Errorf("%d events are stored, want 10", n)
	}
}

// Without an import of $JS.API.INFO the server itself would also reply to requests
// that the account imports: that the account has no streams.
func TestAListenerGetsOneReplyToARequest(t *testing.T) {
	passwords(t, t.TempDir())
	path := file(t, conf(t))
	s := natsserver.ServeFile(t, path)
	prepare(t, s.ClientURL(), listenerSpec("listener"))
	listener, _ := connectAs(t, s.ClientURL(), "listener")
	const requests = 20
	ask := func(when string) {
		replies, err := listener.SubscribeSync("_INBOX_listener." + when)
		if err != nil {
			t.Fatal(err)
		}
		for range requests {
			if err := listener.PublishRequest(consumer+"INFO.EVENTS.listener", replies.Subject, nil); err != nil {
				t.Fatal(err)
			}
		}
		for range requests {
			if m, err := natsserver.Next(replies); err != nil ||
				!strings.Contains(string(m.Data), `"stream_name":"EVENTS"`) {
				t.Fatalf("%s: %v, %v", when, m, err)
			}
		}
		if _, err := natsserver.Request(listener, consumer+"MSG.NEXT.EVENTS.listener",
			[]byte(`{"batch":1,"no_wait":true}`)); err != nil {
			t.Error(err)
		}
		if n, _, _ := replies.Pending(); n > 0 {
			t.Errorf("%s: %d replies more than requests", when, n)
		}
	}
	ask("started")
	opts := natsserver.Options(t, path)
	opts.Host, opts.Port, opts.NoSigs, opts.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	if err := s.ReloadOptions(opts); err != nil {
		t.Fatal(err)
	}
	ask("reloaded")
}

// An interceptor in an account of its own replies to belfry, and belfry notices at
// once when there is none.
func TestAnInterceptorRepliesFromAnAccountOfItsOwn(t *testing.T) {
	url, _ := serveText(t, conf(t))
	front := as(t, url, "belfry", nil)
	listener, refusals := connectAs(t, url, "listener")
	ask := func() (*nats.Msg, error) {
		return natsserver.Request(front.Conn(), interceptor.Subject("save", "Books", "listener"),
			[]byte(`{"op":"save","uuid":"emma"}`))
	}
	if _, err := ask(); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("without an interceptor: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- interceptor.Serve(ctx,
			listener, interceptor.Spec{Name: "listener", Ops: []string{"save"},
				Handler: func(_ context.Context, r interceptor.Request) interceptor.Response {
					return interceptor.Refuse(400, "not "+r.UUID)
				}})
	}()
	var reply string
	eventually(t, func() bool {
		m, err := ask()
		if err == nil {
			reply = string(m.Data)
		}
		return err == nil
	})
	if !strings.Contains(reply, `"not emma"`) || len(refusals) > 0 {
		t.Errorf("the reply is %s, with %d refusals", reply, len(refusals))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// take receives an event as a listener does and does not acknowledge it.
func take(t *testing.T, c *nats.Conn, name string) *nats.Msg {
	t.Helper()
	m, err := natsserver.Request(c, consumer+"MSG.NEXT.EVENTS."+name, []byte(`{"batch":1}`))
	if err != nil || m.Reply == "" {
		t.Fatal(m, err)
	}
	return m
}

func consumerInfo(t *testing.T, b *bus.Bus, name string) *jetstream.ConsumerInfo {
	t.Helper()
	c, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, name)
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo()
}
