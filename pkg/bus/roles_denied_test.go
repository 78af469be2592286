package bus_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

const (
	stream   = "$JS.API.STREAM."
	consumer = "$JS.API.CONSUMER."
)

// forbidden are the requests that only the admin may make, by their effect.
var forbidden = map[string][]string{
	"damage a stream": {
		stream + "PURGE.EVENTS", stream + "DELETE.EVENTS", stream + "UPDATE.EVENTS", stream + "MSG.DELETE.EVENTS",
		stream + "RESTORE.EVENTS",
		stream + "PURGE.DEAD", stream + "DELETE.DEAD", stream + "MSG.DELETE.DEAD", stream + "PURGE.RETRY",
		stream + "DELETE.RETRY", stream + "UPDATE.RETRY",
	},
	"create a stream, which could capture the subjects of others": {stream + "CREATE.EVENTS", stream + "CREATE.MINE",
		stream + "CREATE.DEAD", stream + "CREATE.RETRY"},
	"read the dead letters": {stream + "MSG.GET.DEAD", "$JS.API.DIRECT.GET.DEAD",
		"$JS.API.DIRECT.GET.DEAD.dead.mapping", consumer + "CREATE.DEAD", consumer + "CREATE.DEAD.x.dead.>"},
	"read the retries": {stream + "MSG.GET.RETRY", "$JS.API.DIRECT.GET.RETRY",
		consumer + "CREATE.RETRY.x.retry.mapping"},
	"copy the log": {stream + "SNAPSHOT.EVENTS"},
	"delete a consumer": {consumer + "DELETE.EVENTS.mapping", consumer + "DELETE.EVENTS.listener",
		consumer + "DELETE.RETRY.mapping"},
	"create or update a consumer": {
		consumer + "CREATE.EVENTS", consumer + "CREATE.EVENTS.mapping", consumer + "CREATE.EVENTS.listener",
		consumer + "CREATE.EVENTS.x.events.>",
		consumer + "DURABLE.CREATE.EVENTS.mapping", consumer + "CREATE.RETRY.listener.retry.listener",
		consumer + "CREATE.RETRY.mapping.retry.mapping",
	},
	"reset or pause a consumer": {
		consumer + "RESET.EVENTS.mapping", consumer + "PAUSE.EVENTS.mapping", consumer + "PAUSE.EVENTS.listener",
		consumer + "UNPIN.EVENTS.mapping", consumer + "LEADER.STEPDOWN.EVENTS.mapping",
	},
	"publish a retry": {"retry.mapping", "retry.listener"},
	"end an alert":    {"listeners.confirm", "listeners.missed"},
	"reply to another user": {"_INBOX_front.x", "_INBOX_worker.x", "_INBOX_belfry.x", "_INBOX_admin.x",
		"_INBOX_stranger.x", "_INBOX.x"},
	"manage the server": {
		"$SYS.REQ.SERVER.PING", "$SYS.REQ.SERVER.x.RELOAD", "$SYS.REQ.CLAIMS.UPDATE", "$JS.API.ACCOUNT.PURGE.BELFRY",
		"$JS.API.SERVER.REMOVE", stream + "LEADER.STEPDOWN.EVENTS", "$JS.API.INFO",
	},
}

// forging are what only the users who write stores may publish.
var forging = map[string][]string{
	"forge live events":             {"Store.Saved", "Store.Deleted", "Register", "Binary.Uploaded"},
	"forge durable events":          {"events.1.Store.Saved.Users.u", "events.x"},
	"send requests to interceptors": {"intercept.save.Books.x"},
}

// working are what only workers may publish.
var working = map[string][]string{
	"forge reports of workers":      {"applied.x.1"},
	"share a worker's targets":      {"mapping.workers.all", "mapping.workers.x"},
	"write a worker's dead letters": {"dead.mapping", "dead.mail"},
	"take a worker's events": {consumer + "MSG.NEXT.EVENTS.mapping", consumer + "MSG.NEXT.EVENTS.mail",
		consumer + "MSG.NEXT.RETRY.mapping"},
	"acknowledge a worker's events": {"$JS.ACK.EVENTS.mapping.1.1.1.1.1", "$JS.ACK.RETRY.mapping.1.1.1.1.1"},
	"read a worker's consumer":      {consumer + "INFO.EVENTS.mapping"},
}

// listening are what only the listener of that name may publish.
var listening = map[string][]string{
	"take a listener's events":        {consumer + "MSG.NEXT.EVENTS.listener", consumer + "MSG.NEXT.RETRY.listener"},
	"acknowledge a listener's events": {"$JS.ACK.EVENTS.listener.1.1.1.1.1", "$JS.ACK.RETRY.listener.1.1.1.1.1"},
	"write a listener's dead letters": {"dead.listener"},
	"take another listener's events": {consumer + "MSG.NEXT.EVENTS.other", consumer + "MSG.NEXT.RETRY.other",
		"$JS.ACK.EVENTS.other.1.1.1.1.1", "dead.other"},
	"list the listeners": {consumer + "NAMES.EVENTS", consumer + "LIST.EVENTS", stream + "NAMES", stream + "LIST"},
}

// reading are what neither listeners nor clients may publish: with a filter of subjects
// the reply has the subjects of the log, which contain addresses and ids of sessions.
var reading = map[string][]string{
	"read the subjects of the log": {stream + "INFO.EVENTS"},
	"read the log": {stream + "MSG.GET.EVENTS", "$JS.API.DIRECT.GET.EVENTS",
		"$JS.API.DIRECT.GET.EVENTS.events.1.Store.Saved.Users.u"},
}

// subscriptions are what no role may subscribe to.
var subscriptions = []string{
	">", "*.>", "_INBOX.>", "_INBOX_*.>", "_INBOX_other.>", "_INBOX_admin.>", "$JS.>", "$JS.ACK.>", "$SYS.>",
	"events.>", "dead.>", "retry.>",
}

func TestRolesOfNatsConfAreDeniedEverythingElse(t *testing.T) {
	url := production(t)
	prepare(t, url, listenerSpec("mapping"), listenerSpec("listener"))
	quiet := slog.New(slog.DiscardHandler)
	front := as(t, url, "front", quiet)
	if err := front.Publish(t.Context(), readable("e", 3)); err != nil {
		t.Fatal(err)
	}
	handle(t, as(t, url, "worker", quiet), listenerSpec("mapping"), 3)

	for user, role := range map[string]struct {
		acts   []map[string][]string
		may    []string // of these
		denied []string // besides subscriptions
	}{
		"front": {[]map[string][]string{forbidden, working, listening}, []string{consumer + "LIST.EVENTS"},
			[]string{"mapping.workers.>", "mapping.workers.all"}},
		"worker": {[]map[string][]string{forbidden, listening}, []string{consumer + "LIST.EVENTS"},
			[]string{"applied.>", "Store.*", "intercept.>"}},
		"belfry": {[]map[string][]string{forbidden, listening}, []string{consumer + "LIST.EVENTS"},
			[]string{"_INBOX_front.>", "intercept.>"}},
		"listener": {[]map[string][]string{forbidden, forging, working, listening, reading},
			listening["take a listener's events"],
			[]string{"applied.>", "Store.*", "Register", "intercept.>", "intercept.*.*.other", "mapping.workers.>"}},
		"client": {[]map[string][]string{forbidden, forging, working, listening, reading},
			nil, []string{"applied.>", "Store.*", "intercept.>", "_INBOX_front.>", "store.>", "store.Books.save",
				"$SRV.>", "mapping.workers.>"}},
		"observer": {[]map[string][]string{forbidden, forging, working, listening}, nil,
			[]string{"applied.>", "intercept.>", "_INBOX_front.>", "mapping.workers.>"}},
	} {
		t.Run(user, func(t *testing.T) {
			c, refusals := connectAs(t, url, user)
			may := role.may
			if user == "listener" {
				may = slices.Concat(may, listening["acknowledge a listener's events"],
					listening["write a listener's dead letters"])
			}
			for _, acts := range role.acts {
				for what, subjects := range acts {
					for _, subject := range subjects {
						if slices.Contains(may, subject) {
							continue
						}
						if err := c.Publish(subject, []byte("{}")); err != nil {
							t.Fatal(err)
						}
						refused(t, refusals, what, "publish to", subject)
					}
				}
			}
			for _, subject := range slices.Concat(subscriptions, role.denied) {
				if _, err := c.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				refused(t, refusals, "subscribe", "subscription to", subject)
			}
		})
	}
	if n := stored(t, as(t, url, "admin", quiet)); n != 3 {
		t.Errorf("%d events are stored, want 3", n)
	}
	if _, err := connect(url); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a client without credentials gets %v", err)
	}
}

// The server publishes its reply to any subject that a request names. From an
// account of its own, an observer can't direct it to subscribers or to the log.
func TestObserverCannotDirectRepliesToOthers(t *testing.T) {
	url := production(t)
	prepare(t, url)
	quiet := slog.New(slog.DiscardHandler)
	admin := as(t, url, "admin", quiet)
	if err := admin.Publish(t.Context(), readable("e", 1)); err != nil {
		t.Fatal(err)
	}
	received := make(chan *nats.Msg, 10)
	targets := []string{"Store.Saved", "_INBOX_front.x", "applied.x.1", "dead.x", "events.1.Store.Saved.Users.u",
		stream + "PURGE.EVENTS"}
	for _, subject := range targets[:3] {
		if _, err := admin.Conn().ChanSubscribe(subject, received); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Conn().FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	observer, _ := connectAs(t, url, "observer")
	for _, reply := range targets {
		for _, ask := range []string{"STREAM.INFO.EVENTS", "STREAM.MSG.GET.EVENTS", "DIRECT.GET.EVENTS"} {
			if err := observer.PublishRequest("$JS.belfry.API."+ask, reply, []byte(`{"seq":1}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	readAsObserver(t, observer, readable("e", 1)[0].Subject) // answered after the requests above
	if err := admin.Conn().FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{bus.StreamEvents, bus.StreamDead} {
		s, err := admin.JetStream().Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]uint64{bus.StreamEvents: 1}[name]; s.CachedInfo().State.LastSeq != want ||
			s.CachedInfo().State.Msgs != want {
			t.Errorf("stream %s holds %d messages, the last %d", name, s.CachedInfo().State.Msgs,
				s.CachedInfo().State.LastSeq)
		}
	}
	if len(received) > 0 {
		m := <-received
		t.Errorf("%s receives %s", m.Subject, m.Data)
	}
}

func TestOnlyTheSystemAccountManagesTheServer(t *testing.T) {
	url := production(t)
	system, _ := connectAs(t, url, "system")
	if _, err := natsserver.Request(system, "$SYS.REQ.SERVER.PING", nil); err != nil {
		t.Errorf("the system user gets %v", err)
	}
	admin, _ := connectAs(t, url, "admin")
	if _, err := natsserver.Request(admin, "$SYS.REQ.SERVER.PING", nil); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("the admin gets %v", err)
	}
	if _, err := natsserver.Request(system, stream+"NAMES", nil); err == nil {
		var answer struct{ Error *struct{ Code int } }
		m, _ := natsserver.Request(system, stream+"NAMES", nil)
		if json.Unmarshal(m.Data, &answer) != nil || answer.Error == nil {
			t.Errorf("the system user can list streams: %s", m.Data)
		}
	}
}

// The sample of nats.conf is what `belfry bus role listener` prints.
func TestListenerOfNatsConfHasThePermissionsOfTheCommand(t *testing.T) {
	production(t)
	opts, err := server.ProcessConfigFile("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	publish, subscribe, err := listener.Permissions("listener", false)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(opts.Users, func(u *server.User) bool { return u.Username == "listener" })
	if has := opts.Users[i].Permissions; !slices.Equal(has.Publish.Allow, publish) ||
		!slices.Equal(has.Subscribe.Allow, subscribe) || has.Response == nil {
		t.Errorf("nats.conf lets a listener publish to\n%q\nand subscribe to %q; want\n%q\nand %q", has.Publish.Allow,
			has.Subscribe.Allow, publish, subscribe)
	}
}

// connectAs connects as a user and collects the permission errors of the server.
func connectAs(t *testing.T, url, user string) (*nats.Conn, <-chan error) {
	t.Helper()
	refusals := make(chan error, 1000)
	c, err := connect(url, nats.UserInfo(user, password(user)), nats.CustomInboxPrefix("_INBOX_"+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, refusals
}

func refused(t *testing.T, refusals <-chan error, act, what, subject string) {
	t.Helper()
	ctx, cancel := kit.Patience(t.Context(), time.Minute)
	defer cancel()
	select {
	case err := <-refusals:
		text := strings.ToLower(err.Error())
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(text, what) ||
			!strings.Contains(text, strings.ToLower(`"`+subject+`"`)) {
			t.Errorf("%s: %s %s: the server says %v", act, what, subject, err)
		}
	case <-ctx.Done():
		t.Errorf("%s: %s %s is not refused", act, what, subject)
	}
}

func TestNatsConfRequiresItsPasswords(t *testing.T) {
	production(t)
	if err := os.Unsetenv("BELFRY_FRONT_PASSWORD"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.ProcessConfigFile("../../nats.conf"); err == nil {
		t.Error("the server starts with a user whose password is missing")
	}
}
