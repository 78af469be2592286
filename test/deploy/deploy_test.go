package deploy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/kit/tlskit"
	"belfry/test/process"
)

// The embedded server accepts the shipped nats.conf; all users but belfry's own
// connect through its port.
func TestEmbedded(t *testing.T) {
	w := newFixture(t, fmt.Sprintf("  config: %q\n  listen: 127.0.0.1:0\n", shipped(t)))
	w.belfry = process.ServePlain(t, w.config)
	w.bus = w.belfry.Bus
	w.deploy()

	// The streams and consumers exist after a restart.
	if err := w.belfry.Stop(); err != nil {
		t.Error(err)
	}
	w.belfry = process.ServePlain(t, w.config)
	if status, text := w.ready(); status != http.StatusOK {
		t.Errorf("after a restart: %s", text)
	}
}

// An external server accepts it too, with an ordered listener added as `belfry
// bus role` and `belfry bus account` print it.
func TestExternal(t *testing.T) {
	w := newFixture(t, "")
	conf, err := os.ReadFile(shipped(t))
	if err != nil {
		t.Fatal(err)
	}
	text := string(conf)
	for command, place := range map[string]string{"role": "\naccounts {", "account": "  SYS: {"} {
		printed, _, code, err := process.Run(process.Commands(t), "bus", command, "audit", "--ordered")
		if err != nil || code != 0 {
			t.Fatalf("bus %s ended with %d, %v", command, code, err)
		}
		text = strings.Replace(text, place, "\n"+printed+place, 1)
	}
	w.bus = natsserver.ServeFile(t, w.write("nats.conf", text)).ClientURL()
	w.config = w.write("belfry.yaml", configuration+"  url: "+w.bus+"\n")
	w.belfry = process.ServePlain(t, w.config)
	w.deploy()
	w.run("admin", 1, "consumer audit-31 of stream EVENTS", "bus", "setup", "--check", "--listener", "audit",
		"--ordered")
	w.run("admin", 0, "consumer audit-31 of stream EVENTS", "bus", "setup", "--listener", "audit", "--ordered",
		"--from", "all")
	audit := w.listen("audit", true)
	w.awaitLine(audit, "Store.Saved letters")
	w.awaitLine(audit, "Store.Saved late")

	// A retry, for which an ordered listener pauses a partition.
	w.save("/books", `{"uuid":"poison"}`)
	process.Eventually(t, time.Minute, func() error {
		if out := w.run("admin", 0, "", "dlq", "list", "--listener", "audit"); !strings.Contains(out, "out of tea") {
			return errors.New(out)
		}
		return nil
	})
	w.run("admin", 0, "1 of 1 dead letter to be redelivered", "dlq", "retry", "--listener", "audit")
	process.Eventually(t, time.Minute, func() error {
		if out := w.run("admin", 0, "", "dlq", "list", "--json", "--listener", "audit"); !strings.Contains(out,
			`"retries":1`) {
			return errors.New(out)
		}
		return nil
	})
}

// With TLS on the port belfry itself works, and its commands connect through the
// port with the certificates of the configuration.
func TestEmbeddedWithTLS(t *testing.T) {
	certificate, key, authority := tlskit.Authority(t)
	w := newFixture(t, "")
	conf, err := os.ReadFile(shipped(t))
	if err != nil {
		t.Fatal(err)
	}
	tls := fmt.Sprintf("tls {cert_file: %q, key_file: %q, ca_file: %q, verify: true}\n", certificate, key, authority)
	w.write("nats.conf", tls+string(conf))
	port := kit.FreePort(t)
	w.config = w.write("belfry.yaml", configuration+fmt.Sprintf(
		"  config: nats.conf\n  listen: 127.0.0.1:%d\n  tls: {ca: %q, cert: %q, key: %q}\n", port, authority,
		certificate, key))
	w.belfry = process.ServePlain(t, w.config)
	if want := fmt.Sprintf("tls://127.0.0.1:%d", port); !strings.Contains(w.belfry.Banner, want) {
		t.Errorf("the banner does not contain %s:\n%s", want, w.belfry.Banner)
	}
	w.run("admin", 0, "11 created", "bus", "setup")
	w.awaitReady()
	w.run("admin", 0, "cascade", "listener", "list")

	w.config = w.write("belfry.yaml", configuration+fmt.Sprintf("  config: nats.conf\n  listen: 127.0.0.1:%d\n", port))
	w.run("admin", 1, "can't connect to the bus at tls://127.0.0.1", "listener", "list")
}

// deploy sets up an empty bus and uses it as every user.
func (w *fixture) deploy() {
	w.t.Helper()
	w.degraded("stream EVENTS")
	w.run("admin", 1, "missing", "bus", "setup", "--check", "--listener", "listener")
	for _, user := range []string{"front", "worker", "belfry", "listener"} {
		w.run(user, 1, "lacks the permission", "bus", "setup", "--listener", "listener")
	}
	out := w.run("admin", 0, " created", "bus", "setup", "--listener", "listener", "--store", "Books", "--event",
		"Store.Saved")
	for _, name := range []string{"mapping", "cascade", "mail", "sweep", "listener"} {
		for _, stream := range []string{"EVENTS", "RETRY"} {
			if what := "consumer " + name + " of stream " + stream; !strings.Contains(out, what) {
				w.t.Errorf("%s is not set up:\n%s", what, out)
			}
		}
	}
	w.run("admin", 1,
		"filter events.*.Store.Saved.Books.* instead of events.*.Store.> events.*.Register.> events.*.Binary.>", "bus",
		"setup", "--check", "--listener", "listener")
	w.run("admin", 0, "1 updated", "bus", "setup", "--listener", "listener")
	w.run("admin", 0, "13 in sync\n", "bus", "setup", "--check", "--listener", "listener")
	w.awaitReady()

	file := w.listen("listener", false)
	live := w.observe()
	w.save("/authors", `{"uuid":"ada","name":"Ada"}`)
	w.save("/books", `{"uuid":"letters","author":"ada","title":"Letters"}`)
	process.Eventually(w.t, time.Minute, func() error {
		if author := w.get("/authors/ada"); !strings.Contains(author, `"Letters"`) {
			return errors.New(author)
		}
		return nil
	})
	w.awaitLine(file, "Store.Saved letters")
	if m, err := natsserver.Next(live); err != nil || !strings.Contains(string(m.Data), "ada") {
		w.t.Errorf("the observer receives %v, %v", m, err)
	}

	w.browse("letters")
	w.request("letters")

	// Only the admin resets a listener, and another setup keeps its position.
	w.run("admin", 0, "reads the log from sequence 1", "listener", "reset", "listener", "--from", "all")
	w.run("admin", 0, "13 in sync\n", "bus", "setup", "--listener", "listener")
	w.save("/books", `{"uuid":"late"}`)
	w.awaitLine(file, "Store.Saved late")

	// A worker whose consumer is deleted is reported, and continues once the consumer exists again.
	w.remove("sweep")
	w.degraded("consumer sweep of stream EVENTS is missing")
	w.run("admin", 0, "1 created", "bus", "setup")
	w.awaitReady()
	if log := w.belfry.Log(); strings.Contains(log, "the bus reports an error") {
		w.t.Errorf("belfry lacks a permission:\n%s", log)
	}
}

// browse reads the events of the log as a browser that reconnects.
func (w *fixture) browse(uuid string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), kit.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.belfry.URL+"/events?store=Books", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", "0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), `"`+uuid+`"`) {
			return
		}
	}
	w.t.Errorf("%s: a browser receives no event of %s", res.Status, uuid)
}

// request gets an object as a client of stores over the bus.
func (w *fixture) request(uuid string) {
	w.t.Helper()
	c, err := nats.Connect(w.bus, nats.Timeout(kit.Limit), nats.UserInfo("client", password("client")),
		nats.CustomInboxPrefix("_INBOX_client"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	m, err := natsserver.Request(c, "store.Books.get", []byte(`{"uuid":"`+uuid+`"}`))
	if err != nil || !strings.Contains(string(m.Data), `"Letters"`) {
		w.t.Errorf("a client of stores gets %v, %v", m, err)
	}
}

// remove deletes a consumer as the admin.
func (w *fixture) remove(consumer string) {
	w.t.Helper()
	js := natsserver.JetStream(w.t, w.bus, nats.UserInfo("admin", password("admin")))
	if err := js.DeleteConsumer(w.t.Context(), "EVENTS", consumer); err != nil {
		w.t.Fatal(err)
	}
}

// degraded waits until /readyz reports what is missing and which command helps.
func (w *fixture) degraded(what string) {
	w.t.Helper()
	process.Eventually(w.t, time.Minute, func() error {
		status, text := w.ready()
		if status == http.StatusOK && strings.Contains(text, what) && strings.Contains(text, "belfry bus setup") {
			return nil
		}
		return fmt.Errorf("%d %s", status, text)
	})
}

// observe subscribes to live events, and reads the log, as the observer.
func (w *fixture) observe() *nats.Subscription {
	w.t.Helper()
	c, err := nats.Connect(w.bus, nats.Timeout(kit.Limit), nats.UserInfo("observer", password("observer")),
		nats.CustomInboxPrefix("_INBOX_observer"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	live, err := c.SubscribeSync("Store.*")
	if err != nil {
		w.t.Fatal(err)
	}
	js, err := jetstream.NewWithDomain(c, "belfry")
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := js.Stream(w.t.Context(), "EVENTS"); err != nil {
		w.t.Error(err)
	}
	return live
}
