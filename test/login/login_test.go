// Package login tests logging in to belfry through providers: GitHub, Google,
// Facebook, Amazon, Twitter, GitLab, Discord, LinkedIn, Apple, Microsoft, Slack and one
// of OpenID Connect, which run beside it.
// After each test no secret of a login may be in the log, in an event, in a
// reply or in a store. What needs a fake clock, a race or a crash between two
// writes is tested on the service itself.
package login

import (
	"cmp"
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
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
	"belfry/test/provider"
)

func TestMain(m *testing.M) { process.Main(m) }

const patience = time.Minute

// names are the configured providers.
var names = []string{"github", "google", "facebook", "amazon", "twitter", "oidc"}

// keeping are more of them, whose tokens are kept where the provider issues some.
var keeping = []string{"gitlab", "discord", "linkedin", "apple", "microsoft", "slack"}

// identOf is the uuid of the ident of a provider's user.
func identOf(id, name string) string {
	switch name {
	case "microsoft":
		id = provider.Tenant + "." + provider.MicrosoftUser(id)
	case "slack":
		id = provider.SlackTeam + "." + id
	}
	return id + "_" + name
}

// settings configure login through the providers. Users and idents are readable
// by everybody, so that tests can check them.
const settings = `
log: {level: debug}
bus: {listen: "127.0.0.1:0"}
data: data
stores:
  Users: {expose: {list: true}, policy: {create: "false", get: "true", update: "false", delete: "false", list: "true"}%s}
  Idents: {expose: {}, policy: {create: "false", get: "true", update: "false", delete: "false", list: "true"}}
authentication:
  successRedirect: /in?from=belfry
  failureRedirect: /out
  limits: {address: %d}
  encryptionKey: qVf0rqU7n3pJx0m1c2s5YkE8b6d9hT4wLzGvXuPaNoM=
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

// fixture is belfry and the providers, in a test or one of its subtests.
type fixture struct {
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

// options are what differs between tests.
type options struct {
	users string            // more settings of the store of users
	limit int               // of an address; 0 is none
	files map[string]string // beside the configuration
	race  bool              // flows meet: belfry has the race detector

	providers string // settings of providers of others' that are used instead
	pages     bool   // browsers are sent to belfry's pages
}

// newFixture starts belfry and the providers.
func newFixture(t *testing.T, o options) *fixture {
	t.Helper()
	w := &fixture{t, &place{providers: provider.Start(t), folder: t.TempDir()}}
	w.start(o)
	return w
}

// start starts belfry on the fixture's data.
func (w *fixture) start(o options) {
	w.Helper()
	for name, text := range o.files {
		w.must(os.WriteFile(filepath.Join(w.folder, name), []byte(text), 0o600))
	}
	file := filepath.Join(w.folder, "belfry.yaml")
	text := fmt.Sprintf(settings, o.users, o.limit)
	if o.pages {
		text = strings.NewReplacer("  successRedirect: /in?from=belfry\n", "", "  failureRedirect: /out\n",
			"").Replace(text)
	}
	w.must(os.WriteFile(file, []byte(text+cmp.Or(o.providers, providersOf(w.providers))), 0o600))
	serve := process.ServePlain
	if o.race {
		serve = process.Serve
	}
	server := serve(w.T, file, "--listen", "127.0.0.1:0")
	w.Cleanup(func() {
		if w.server == server && !w.Failed() {
			w.checkNoSecretLeaked()
		}
	})
	w.server = server
	w.url = strings.Replace(w.server.URL, "127.0.0.1", "localhost", 1)
	w.providers.Register(w.url + "/auth/callback")
}

// stop stops belfry.
func (w *fixture) stop() {
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
	for _, name := range []string{"gitlab", "discord", "linkedin"} {
		c := s.Config(name)
		fmt.Fprintf(&b,
			"    %s: {clientID: %q, clientSecret: %q, authURL: %q, tokenURL: %q, profileURL: %q, tokens: keep}\n",
			name, c.ClientID, c.ClientSecret, c.AuthURL, c.TokenURL, c.ProfileURL)
	}
	for name, more := range map[string]string{
		"apple": fmt.Sprintf("issuer: %q, teamID: %s, keyID: %s, privateKey: %q", s.Config("apple").Issuer,
			provider.AppleTeam, provider.AppleKey, provider.ApplePrivateKey()),
		"microsoft": fmt.Sprintf("baseURL: %q, clientSecret: %q", s.Config("microsoft").Issuer,
			s.Config("microsoft").ClientSecret),
		"slack": fmt.Sprintf("issuer: %q, clientSecret: %q", s.Config("slack").Issuer, s.Config("slack").ClientSecret),
	} {
		c := s.Config(name)
		fmt.Fprintf(&b, "    %s: {clientID: %q, authURL: %q, tokenURL: %q, keysURL: %q, tokens: keep, %s}\n", name,
			c.ClientID, c.AuthURL, c.TokenURL, c.KeysURL, more)
	}
	c, t := s.Config("oidc"), s.Twitter()
	fmt.Fprintf(&b, "    oidc: {issuer: %q, clientID: %q, clientSecret: %q}\n", s.Issuer(), c.ClientID, c.ClientSecret)
	fmt.Fprintf(&b, "    twitter: {consumerKey: %q, consumerSecret: %q, requestTokenURL: %q, authorizeURL: %q, "+
		"accessTokenURL: %q, profileURL: %q}\n",
		t.ConsumerKey, t.ConsumerSecret, t.RequestTokenURL, t.AuthorizeURL, t.AccessTokenURL, t.ProfileURL)
	return b.String()
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// sub runs a subtest with the same fixture.
func (w *fixture) sub(name string, test func(w *fixture)) {
	w.Run(name, func(t *testing.T) { test(&fixture{t, w.place}) })
}

// fields are those of an object.
type fields map[string]any

// object returns an object of a store, nil when there is none.
func (w *fixture) object(path string) fields {
	w.Helper()
	res, body := w.browser().request(http.MethodGet, path, "")
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

// ident is the ident of a provider's user.
func (w *fixture) ident(id, name string) fields {
	w.Helper()
	return w.object("/idents/" + identOf(id, name))
}

// count counts users and idents.
func (w *fixture) count() [2]int {
	w.Helper()
	_, body := w.browser().request(http.MethodGet, "/users?limit=500", "")
	var list struct{ Items []fields }
	w.must(json.Unmarshal(body, &list))
	// No list shows idents, but the log does.
	events := func(name event.Name) int {
		return len(w.replay(bus.StreamEvents, event.LogPrefix+"*."+string(name)+".Idents.*"))
	}
	return [2]int{len(list.Items), events(event.StoreSaved) - events(event.StoreDeleted)}
}

// registerEvents are the Register events of a user, "*" for all.
func (w *fixture) registerEvents(user string) (found []event.Envelope) {
	w.Helper()
	for _, m := range w.replay(bus.StreamEvents,
		event.LogPrefix+"*."+string(event.Register)+".Users."+event.Token(user)) {
		_, data, _ := strings.Cut(m, " ")
		var e event.Envelope
		w.must(json.Unmarshal([]byte(data), &e))
		found = append(found, e)
	}
	return found
}

// replay reads the messages of a stream on a subject, once nothing is pending.
func (w *fixture) replay(stream, subject string) (found []string) {
	w.Helper()
	w.must(w.server.Idle())
	js := natsserver.JetStream(w, w.server.Bus)
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
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
