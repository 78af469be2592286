// Package login logs browsers in to the real belfry through providers: GitHub,
// Google, Facebook, Amazon, Twitter and one of OpenID Connect, which run
// beside it. Whatever a test does, no secret of a login may be found in the
// log, in an event, in a reply or in a store afterwards. What no browser can
// arrange (a clock, a race, a crash between two writes) is tried on the
// service itself.
package login

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
	"belfry/test/provider"
)

func TestMain(m *testing.M) { process.Main(m) }

const patience = time.Minute

// names are those of the providers that belfry is configured with.
var names = []string{"github", "google", "facebook", "amazon", "twitter", "oidc"}

// settings are those of a belfry that logs in through the providers. Users and
// idents are open to everybody, so that tests see them.
const settings = `
log: {level: debug}
bus: {listen: "127.0.0.1:0"}
data: data
stores:
  Users: {expose: {list: true}, policy: {create: "false", get: "true", update: "false", delete: "false", list: "true"}%s}
  Idents: {expose: {list: true}, policy: {create: "false", get: "true", update: "false", delete: "false", list: "true"}}
authentication:
  successRedirect: /in?from=belfry
  failureRedirect: /out
  limits: {address: %d}
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

// world is belfry and the providers, in a test or one of its subtests.
type world struct {
	*testing.T
	*place
}

type place struct {
	providers *provider.Server
	folder    string
	server    *process.Server
	url       string // of belfry, as browsers know it
	logs      string // of belfries that served before
	secrets   secrets
}

// options are what differs from test to test.
type options struct {
	users string            // more settings of the store of users
	limit int               // of an address; 0 is none
	files map[string]string // beside the configuration
}

// begin starts a belfry and the providers.
func begin(t *testing.T, o options) *world {
	t.Helper()
	w := &world{t, &place{providers: provider.Start(t), folder: t.TempDir()}}
	w.start(o)
	return w
}

// start starts a belfry on the world's data.
func (w *world) start(o options) {
	w.Helper()
	for name, text := range o.files {
		w.must(os.WriteFile(filepath.Join(w.folder, name), []byte(text), 0o600))
	}
	file := filepath.Join(w.folder, "belfry.yaml")
	w.must(os.WriteFile(file, []byte(fmt.Sprintf(settings, o.users, o.limit)+providersOf(w.providers)), 0o600))
	server := process.Serve(w.T, file, "--listen", "127.0.0.1:0")
	w.Cleanup(func() {
		if w.server == server && !w.Failed() {
			w.sealed()
		}
	})
	w.server = server
	w.url = strings.Replace(w.server.URL, "127.0.0.1", "localhost", 1)
	w.providers.Register(w.url + "/auth/callback")
}

// stop ends belfry in order.
func (w *world) stop() {
	w.Helper()
	w.must(w.server.Stop())
	log := w.server.Log()
	if len(log) == process.LogKept {
		w.Fatal("not all of the log was kept")
	}
	w.logs += log
}

// providersOf are settings of the providers.
func providersOf(s *provider.Server) string {
	var b strings.Builder
	for _, name := range []string{"github", "google", "facebook", "amazon"} {
		c := s.Config(name)
		fmt.Fprintf(&b, "    %s: {clientID: %q, clientSecret: %q, authURL: %q, tokenURL: %q, profileURL: %q}\n",
			name, c.ClientID, c.ClientSecret, c.AuthURL, c.TokenURL, c.ProfileURL)
	}
	c, t := s.Config("oidc"), s.Twitter()
	fmt.Fprintf(&b, "    oidc: {issuer: %q, clientID: %q, clientSecret: %q}\n", s.Issuer(), c.ClientID, c.ClientSecret)
	fmt.Fprintf(&b, "    twitter: {consumerKey: %q, consumerSecret: %q, requestTokenURL: %q, authorizeURL: %q, accessTokenURL: %q, profileURL: %q}\n",
		t.ConsumerKey, t.ConsumerSecret, t.RequestTokenURL, t.AuthorizeURL, t.AccessTokenURL, t.ProfileURL)
	return b.String()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// sub runs a subtest in the same world.
func (w *world) sub(name string, test func(w *world)) {
	w.Run(name, func(t *testing.T) { test(&world{t, w.place}) })
}

// fields are those of an object.
type fields map[string]any

// look returns an object of a store, nil when there is none.
func (w *world) look(path string) fields {
	w.Helper()
	res, body := w.browser().ask(http.MethodGet, path, "")
	switch res.StatusCode {
	case http.StatusNotFound:
		return nil
	case http.StatusOK:
		var o fields
		w.must(json.Unmarshal(body, &o))
		return o
	}
	w.Fatalf("GET %s: %s %s", path, res.Status, body)
	return nil
}

// ident is the way in of a provider's user.
func (w *world) ident(id, name string) fields {
	w.Helper()
	return w.look("/idents/" + id + "_" + name)
}

// count counts users and idents.
func (w *world) count() (n [2]int) {
	w.Helper()
	for i, path := range []string{"/users?limit=500", "/idents?limit=500"} {
		_, body := w.browser().ask(http.MethodGet, path, "")
		var list struct{ Items []fields }
		w.must(json.Unmarshal(body, &list))
		n[i] = len(list.Items)
	}
	return n
}

// registered are the events Register of a user's, "*" for all.
func (w *world) registered(user string) (found []event.Envelope) {
	w.Helper()
	for _, m := range w.replay(bus.StreamEvents, event.LogPrefix+"*."+string(event.Register)+".Users."+event.Token(user)) {
		_, data, _ := strings.Cut(m, " ")
		var e event.Envelope
		w.must(json.Unmarshal([]byte(data), &e))
		found = append(found, e)
	}
	return found
}

// replay reads what a stream holds on a subject, once nothing is pending.
func (w *world) replay(stream, subject string) (found []string) {
	w.Helper()
	w.must(w.server.Idle())
	js := natsserver.JetStream(w, w.server.Bus)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{subject}})
	w.must(err)
	for info := consumer.CachedInfo(); len(found) < int(info.NumPending); {
		batch, err := consumer.FetchNoWait(1000)
		w.must(err)
		for m := range batch.Messages() {
			found = append(found, m.Subject()+" "+string(m.Data()))
		}
		w.must(batch.Error())
	}
	return found
}

func eventually(t testing.TB, right func() error) {
	t.Helper()
	process.Eventually(t, patience, right)
}
