package natsapi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/wire"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// production starts a server from the nats.conf that belfry ships.
func production(t *testing.T) string {
	t.Helper()
	t.Setenv("BELFRY_NATS_NAME", "test")
	t.Setenv("BELFRY_NATS_STORE", t.TempDir())
	for _, variable := range []string{"FRONT", "WORKER", "ALL", "LISTENER", "CLIENT", "OBSERVER", "ADMIN", "SYSTEM"} {
		t.Setenv("BELFRY_"+variable+"_PASSWORD", "pw-of-"+variable)
	}
	return natsserver.ServeFile(t, "../../nats.conf").ClientURL()
}

// as connects as a user of nats.conf; refusals receives the permission errors of the server.
func as(t *testing.T, url, user, variable string) (conn *nats.Conn, refusals chan error) {
	t.Helper()
	refusals = make(chan error, 100)
	conn, err := nats.Connect(url, nats.Timeout(kit.Limit), nats.UserInfo(user, "pw-of-"+variable),
		nats.CustomInboxPrefix("_INBOX_"+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn, refusals
}

func TestTheRolesOfNatsConf(t *testing.T) {
	for user, variable := range map[string]string{"front": "FRONT", "belfry": "ALL"} {
		t.Run(user, func(t *testing.T) {
			url := production(t)
			w := newFixture(t, nil, nil)
			front, lacks := as(t, url, user, variable)
			w.options.Conn = front
			s := w.serve()
			defer func() { w.must(s.Stop(context.Background())) }()
			w.must(front.FlushTimeout(kit.Limit))
			var refused chan error
			w.conn, refused = as(t, url, "client", "CLIENT")

			w.want("", wire.Save, `{"object":{"uuid":"emma"}}`, key("k")...)
			w.want("", wire.Update, `{"object":{"uuid":"emma"}}`)
			w.want("", wire.Get, `{"uuid":"emma"}`)
			w.want("", wire.Exists, `{"uuid":"emma"}`)
			w.want("", wire.List, `{}`)
			w.want("", wire.Delete, `{"uuid":"emma"}`)

			// No server answers for Authors here, but requests are permitted; the others are not.
			if _, err := natsserver.Request(w.conn, "store.Authors.get", []byte("{}")); !errors.Is(err,
				nats.ErrNoResponders) {
				t.Errorf("reading authors: %v", err)
			}
			for _, subject := range []string{
				"store.Authors.save", "store.Authors.update", "store.Authors.delete", "store.Users.get",
				"store.Requests.get",
				"$SRV.INFO", "events.1.Store.Saved.Books.x", "Store.Saved", "$JS.API.STREAM.PURGE.EVENTS",
				"_INBOX_front.x",
			} {
				w.must(w.conn.Publish(subject, []byte("{}")))
				w.must(w.conn.FlushTimeout(kit.Limit))
				if err := <-refused; !strings.Contains(strings.ToLower(err.Error()),
					strings.ToLower(`publish to "`+subject)) {
					t.Errorf("%s: %v", subject, err)
				}
			}
			for _, subject := range []string{"store.Books.save", "_INBOX_front.>", "Store.Saved", "events.>"} {
				if _, err := w.conn.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				if err := <-refused; !strings.Contains(err.Error(), `Subscription to "`+subject) {
					t.Errorf("%s: %v", subject, err)
				}
			}

			admin, _ := as(t, url, "admin", "ADMIN")
			if _, err := natsserver.Request(admin, "$SRV.PING.store-Books", nil); err != nil {
				t.Errorf("the admin requests the service: %v", err)
			}
			if len(lacks) > 0 {
				t.Errorf("%s lacks a right: %v", user, <-lacks)
			}
		})
	}
}

// A listener in an account of its own sends requests for the stores that the account
// imports, and for no other.
func TestAListenerUsesTheStoresThatItsAccountImports(t *testing.T) {
	production(t) // the environment
	data, err := os.ReadFile("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	const imported = `{service: {account: BELFRY, subject: "dead.listener"}}`
	text := strings.Replace(string(data), imported,
		imported+"\n"+`{service: {account: BELFRY, subject: "store.Books.save"}}`, 1)
	text = strings.Replace(text, "permissions: $LISTENER}", "}, {user: nobody, password: p, permissions: $LISTENER}", 1)
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	url := natsserver.ServeFile(t, file).ClientURL()
	w := newFixture(t, nil, nil)
	w.options.Conn, _ = as(t, url, "front", "FRONT")
	s := w.serve()
	defer func() { w.must(s.Stop(context.Background())) }()
	w.must(w.options.Conn.FlushTimeout(kit.Limit))
	w.conn, _ = as(t, url, "listener", "LISTENER")

	w.want("", wire.Save, `{"object":{"uuid":"emma"}}`, key("k")...)
	w.want("", wire.Save, `{"object":{"uuid":"emma"}}`, key("k")...)
	w.want("409", wire.Save, `{"object":{"uuid":"emma"}}`)
	for _, subject := range []string{"store.Books.get", "store.Books.delete", "store.Authors.save"} {
		if _, err := natsserver.Request(w.conn, subject, []byte(`{"uuid":"emma"}`)); !errors.Is(err,
			nats.ErrNoResponders) {
			t.Errorf("%s: %v", subject, err)
		}
	}
}

// TestRepliesGoToInboxesOnly: the front may publish events, so no client may
// have it publish its answer there.
func TestRepliesGoToInboxesOnly(t *testing.T) {
	w := open(t)
	received, err := w.conn.SubscribeSync(">")
	w.must(err)
	for _, to := range []string{"events.3.Store.Deleted.Books.emma", "Store.Deleted", "store.Books.list",
		"$JS.API.STREAM.PURGE.EVENTS", "_GR_.a.b.Store.Saved"} {
		for subject, body := range map[string]string{"store.Books.save": `{"object":{"uuid":"emma"}}`,
			"store.Books.list": "no JSON", "$SRV.INFO": ""} {
			w.must(w.conn.PublishRequest(subject, to, []byte(body)))
		}
	}
	w.want("404", wire.Get, `{"uuid":"emma"}`)
	w.want("", wire.List, `{}`)
	for {
		m, err := received.NextMsg(100 * time.Millisecond)
		if err != nil {
			break
		}
		if !strings.HasPrefix(m.Subject, "_INBOX") && !strings.HasPrefix(m.Subject, "store.Books.") &&
			m.Subject != "$SRV.INFO" || m.Subject == "store.Books.list" && m.Reply == "" {
			t.Errorf("received on %s: %s", m.Subject, m.Data)
		}
	}
}
