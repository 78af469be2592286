package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

const accounts = `
data: ./data
listen: 127.0.0.1:0
stores:
  Users: {expose: {list: true}, policy: {create: "false", get: "true", list: "true"}}
authentication:
  limits: {address: 0, account: 0}
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

// registrations are those of one test: several clients register, some the same address at once.
type registrations struct {
	mu    sync.Mutex
	url   string
	tries map[string][]string // the passwords that were tried, by address
	acked map[string]string   // the one that was acknowledged
	wrong []string
	http  http.Client
}

// register registers an address, and reports false when the server is not running.
func (w *registrations) register(address, password string) bool {
	w.mu.Lock()
	w.tries[address] = append(w.tries[address], password)
	w.mu.Unlock()
	status, _, err := w.send("POST", "/auth/email", map[string]any{"register": true, "login": address, "password": password, "address": address}, "")
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil || status == http.StatusServiceUnavailable:
		return false
	case status == http.StatusNoContent && w.acked[address] != "":
		w.wrong = append(w.wrong, address+" was registered twice")
	case status == http.StatusNoContent:
		w.acked[address] = password
	case status != http.StatusConflict:
		w.wrong = append(w.wrong, fmt.Sprintf("registering %s: status %d", address, status))
	}
	return true
}

func (w *registrations) send(method, path string, body any, token string) (status int, reply *http.Response, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	w.mu.Lock()
	url := w.url
	w.mu.Unlock()
	req, err := http.NewRequest(method, url+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := w.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(content))
	return res.StatusCode, res, err
}

func (w *registrations) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// start has clients register until the server is killed. Each address is registered by two of them.
func (w *registrations) start(round int) (wait func()) {
	var all sync.WaitGroup
	for client := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				if !w.register(fmt.Sprintf("r%d-%d-%d@example.com", round, client/2, n), fmt.Sprintf("the password of %d", client)) {
					return
				}
			}
		})
	}
	return all.Wait
}

// user logs in and returns the user's uuid, "" when that is refused.
func (w *registrations) user(address, password string) (string, error) {
	status, reply, err := w.send("POST", "/auth/email", map[string]string{"login": address, "password": password}, "")
	if err != nil || status == http.StatusForbidden || status == http.StatusNotFound {
		return "", err
	}
	token := ""
	for _, c := range reply.Cookies() {
		token = c.Value
	}
	if status != http.StatusNoContent || token == "" {
		return "", fmt.Errorf("logging in as %s: status %d", address, status)
	}
	status, reply, err = w.send("GET", "/auth/me", nil, token)
	if err != nil || status != http.StatusOK {
		return "", fmt.Errorf("%s: status %d, %w", address, status, err)
	}
	var me struct {
		UUID, Address string
		Idents        []struct{ UUID string }
	}
	if err := json.NewDecoder(reply.Body).Decode(&me); err != nil {
		return "", err
	}
	if me.Address != address || len(me.Idents) != 1 || me.Idents[0].UUID != address+"_email" {
		err = fmt.Errorf("%s is %+v", address, me)
	}
	return me.UUID, err
}

// A registration that was acknowledged exists with its event when belfry is killed; no address is lost
// and none has two users.
func TestSoakNoRegistrationIsLostWhenBelfryIsKilled(t *testing.T) {
	t.Parallel()
	soak := kit.Soak(t, 2)
	port := kit.FreePort(t)
	config := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(config, fmt.Appendf([]byte(accounts), "bus: {listen: '127.0.0.1:%d'}\n", port), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &registrations{tries: map[string][]string{}, acked: map[string]string{}, http: http.Client{Timeout: timeout}}
	server := process.Serve(t, config)
	for soak.More() {
		w.mu.Lock()
		w.url = server.URL
		w.mu.Unlock()
		wait, enough := w.start(soak.Round()), w.count()+1+soak.Rand().IntN(4)
		process.Eventually(t, time.Minute, func() error {
			if n := w.count(); n < enough {
				return fmt.Errorf("%d of %d registrations", n, enough)
			}
			return nil
		})
		server.Kill() // in the middle of registrations
		wait()
		server = process.Serve(t, config)
	}
	w.url = server.URL
	idle(t, server)
	t.Logf("%d of %d addresses acknowledged around %d kills", len(w.acked), len(w.tries), soak.Round())
	if len(w.acked) == 0 {
		t.Fatal("no registration was acknowledged")
	}
	users := w.logInToAll(t)
	idle(t, server)
	w.compareUsers(t, users)
	compareEvents(t, fmt.Sprintf("nats://127.0.0.1:%d", port), users)
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	verify(t, config)
	if err := server.Stop(); err != nil {
		t.Errorf("stopping: %v\n%s", err, server.Log())
	}
	verify(t, config)
}

// logInToAll logs in to every address that was acknowledged. An address whose registration was not
// answered has a user with one of the passwords that were tried, or can be registered. It returns the
// users by their addresses.
func (w *registrations) logInToAll(t *testing.T) map[string]string {
	t.Helper()
	users := map[string]string{}
	for address, tries := range w.tries {
		if w.acked[address] != "" {
			tries = []string{w.acked[address]}
		}
		for _, password := range tries {
			user, err := w.user(address, password)
			if err != nil {
				t.Fatal(err)
			}
			if user != "" {
				users[address] = user
			}
		}
		if users[address] != "" {
			continue
		}
		if w.acked[address] != "" || !w.register(address, "the password of the last") || w.acked[address] == "" {
			t.Errorf("%s has no user and can't be registered; acknowledged was %q", address, w.acked[address])
			continue
		}
		process.Eventually(t, time.Minute, func() (err error) {
			users[address], err = w.user(address, "the password of the last")
			return err
		})
	}
	return users
}

// compareUsers compares the users of the store with those that could log in.
func (w *registrations) compareUsers(t *testing.T, want map[string]string) {
	t.Helper()
	owner := map[string]string{}
	for cursor := ""; ; {
		status, reply, err := w.send("GET", "/users?limit=500&cursor="+cursor, nil, "")
		if err != nil || status != http.StatusOK {
			t.Fatalf("listing users: status %d, %v", status, err)
		}
		var page struct {
			Items []struct{ UUID, Address string }
			Next  string
		}
		if err := json.NewDecoder(reply.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Items {
			if owner[u.Address] != "" {
				t.Errorf("%s has two users", u.Address)
			}
			owner[u.Address] = u.UUID
			if want[u.Address] != u.UUID {
				t.Errorf("%s is the user %s, but %q logs in", u.Address, u.UUID, want[u.Address])
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(owner) != len(want) {
		t.Errorf("%d users, want %d", len(owner), len(want))
	}
}

// compareEvents compares the Register events of the log with the users: each has one.
func compareEvents(t *testing.T, url string, users map[string]string) {
	t.Helper()
	js := natsserver.JetStream(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := js.OrderedConsumer(ctx, "EVENTS", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"events.*.Register.Users.>"}})
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]string{} // by address
	for pending := uint64(1); pending > 0; {
		m, err := log.Next(jetstream.FetchMaxWait(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		pending = meta.NumPending
		var e event.Envelope
		var datas struct{ Login string }
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(e.Datas, &datas); err != nil {
			t.Fatal(err)
		}
		if events[datas.Login] != "" && events[datas.Login] != e.ID {
			t.Errorf("%s has two Register events", datas.Login)
		}
		events[datas.Login] = e.ID
		if users[datas.Login] != e.UUID || strings.Contains(string(m.Data()), "password") {
			t.Errorf("the event is %s, but the user is %q", m.Data(), users[datas.Login])
		}
	}
	if len(events) != len(users) {
		t.Errorf("%d Register events, want %d", len(events), len(users))
	}
}
