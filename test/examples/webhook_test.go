package examples

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/process"
)

const secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

// receiver is the receiver of the webhook. It refuses some events once, others
// always, and redirects one to a private address.
type receiver struct {
	t       *testing.T
	private string // address of another server

	mu    sync.Mutex
	posts map[string]int // by uuid
	taken map[string]int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	e, bad := event.Decode(body)
	if err != nil || bad != nil || e.ID != req.Header.Get("webhook-id") || !signed(body, req.Header) {
		r.t.Errorf("%v, %v, signed %q: %s", err, bad, req.Header.Get("webhook-signature"), body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts[e.UUID]++
	switch {
	case e.UUID == "gone":
		w.WriteHeader(http.StatusGone)
	case e.UUID == "moved":
		http.Redirect(w, req, r.private, http.StatusTemporaryRedirect)
	case r.posts[e.UUID] == 1 && strings.HasSuffix(e.UUID, "5"):
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		r.taken[e.UUID]++
	}
}

// signed verifies a signature as receivers do, by the convention of Standard Webhooks: of the id, the time and the
// body.
func signed(body []byte, h http.Header) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	at, wrong := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	return err == nil && wrong == nil && time.Since(time.Unix(at, 0)).Abs() < kit.Limit &&
		hmac.Equal([]byte(h.Get("webhook-signature")), []byte("v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
}

// done returns the uuids of the accepted events.
func (r *receiver) done() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for uuid := range r.taken {
		all = append(all, uuid)
	}
	return all
}

func TestWebhook(t *testing.T) {
	w := newFixture(t, "stores: {Books: {expose: {}}, Notes: {expose: {}}}")
	webhook := program(t, "webhook")
	private := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(private.Close)
	r := &receiver{t: t, private: private.URL, posts: map[string]int{}, taken: map[string]int{}}
	server := httptest.NewTLSServer(r)
	t.Cleanup(server.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	w.check(os.WriteFile(authority,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))

	env := []string{"WEBHOOK_SECRET=" + secret, "SSL_CERT_FILE=" + authority, "WEBHOOK_URL=" + server.URL + "/hunter2"}
	args := []string{"-allow-private", "-events", "Store.Saved,Store.Updated", "-stores", "Books"}
	c := w.start(env, webhook, args...)
	w.listens("webhook")
	for i := range 30 {
		w.save("/books", fmt.Sprintf(`{"uuid":"b-%d"}`, i))
		w.save("/notes", fmt.Sprintf(`{"uuid":"n-%d"}`, i))
	}
	w.save("/books", `{"uuid":"gone"}`)
	w.save("/books", `{"uuid":"moved"}`)
	w.eventually(func() error { return atLeast(5, r.done()) })
	c.kill()
	again := w.start(env, webhook, args...)
	w.eventually(func() error { return atLeast(30, r.done()) })
	w.idle("webhook")
	again.stop()

	r.mu.Lock()
	defer r.mu.Unlock()
	for uuid, n := range r.posts {
		final := uuid == "gone" || uuid == "moved"
		if !strings.HasPrefix(uuid, "b-") && !final || final && r.taken[uuid] > 0 {
			t.Errorf("%s was posted %d times and accepted %d times", uuid, n, r.taken[uuid])
		}
	}
	reasons := map[string]string{}
	for _, l := range w.letters("webhook") {
		reasons[l.UUID] = l.Reason
	}
	if len(reasons) != 2 || !strings.Contains(reasons["gone"], "410") ||
		!strings.Contains(reasons["moved"], "redirects are not followed") {
		t.Errorf("the reasons of the dead letters are %v", reasons)
	}
	for _, c := range []*child{c, again} {
		if said := c.stderr.String(); strings.Contains(said, "hunter2") || strings.Contains(said, secret[10:]) {
			t.Errorf("its output contains its secrets:\n%s", said)
		}
	}
}

// A private address is refused in every notation, and nothing is sent there.
func TestWebhookRefusesPrivateAddresses(t *testing.T) {
	w := newFixture(t, "stores: {Books: {expose: {}}}")
	webhook := program(t, "webhook")
	server := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a private address received a request") }))
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	hosts := map[string]string{
		"address": "127.0.0.1", "name": "localhost", "mapped": "[::ffff:127.0.0.1]", "any": "0.0.0.0",
	}
	for name, host := range hosts {
		// A proxy must not be used: it would connect instead of the program.
		env := []string{"WEBHOOK_SECRET=" + secret, "HTTP_PROXY=" + server.URL}
		w.start(env, webhook, "-name", name, "-allow-http", "-url", "http://"+host+":"+port)
		w.listens(name)
	}
	w.save("/books", `{"uuid":"b"}`)
	for name, host := range hosts {
		w.idle(name)
		if all := w.letters(name); len(all) != 1 || !strings.Contains(all[0].Reason, "prohibited IP address") {
			t.Errorf("%s: the dead letters are %v", host, all)
		}
	}
}

// Settings are checked before the program connects to the bus.
func TestWebhookRefusesUnusableSettings(t *testing.T) {
	t.Parallel()
	w := &fixture{t: t, belfry: &process.Server{Bus: "nats://127.0.0.1:1"}}
	webhook := program(t, "webhook")
	for name, c := range map[string]struct {
		secret string
		args   []string
	}{
		"no URL":          {secret, nil},
		"http":            {secret, []string{"-url", "http://127.0.0.1:1/hunter2"}},
		"a user":          {secret, []string{"-url", "https://ada:hunter2@127.0.0.1:1"}},
		"no secret":       {"", []string{"-url", "https://127.0.0.1:1"}},
		"a short secret":  {"whsec_aHVudGVyMg==", []string{"-url", "https://127.0.0.1:1"}},
		"no event's name": {secret, []string{"-url", "https://127.0.0.1:1", "-events", "Store Saved"}},
		"not in the log":  {secret, []string{"-url", "https://127.0.0.1:1", "-events", "Store.Save"}},
		"no flag":         {secret, []string{"-url", "https://127.0.0.1:1", "Store.Saved"}},
	} {
		running := w.start([]string{"WEBHOOK_SECRET=" + c.secret}, webhook, c.args...)
		if code := running.exit(); code != 2 {
			t.Errorf("%s: it exited with %d", name, code)
		}
		if said := running.stderr.String(); said == "" || strings.Contains(said, "hunter2") ||
			strings.Contains(said, "aHVudGVyMg") {
			t.Errorf("%s: its output is %q", name, said)
		}
	}
}
