package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
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

// registering is for how long belfry is killed at most: each registration
// hashes a password, which is meant to take its time.
const registering = 20 * time.Second

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

// town is where people register, some for the same address at once.
type town struct {
	mu    sync.Mutex
	url   string
	tries map[string][]string // the passwords that were tried, by address
	acked map[string]string   // the one that was acknowledged
	wrong []string
	http  http.Client
}

// register registers an address, and reports false when the server is gone.
func (w *town) register(address, password string) bool {
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

func (w *town) send(method, path string, body any, token string) (status int, reply *http.Response, err error) {
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

func (w *town) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// people register until the server is gone. Each address is that of two.
func (w *town) people(round int) (wait func()) {
	var all sync.WaitGroup
	for person := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				if !w.register(fmt.Sprintf("r%d-%d-%d@example.com", round, person/2, n), fmt.Sprintf("the password of %d", person)) {
					return
				}
			}
		})
	}
	return all.Wait
}

// user logs in and returns the user's uuid, "" when that is refused.
func (w *town) user(address, password string) (string, error) {
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

// belfry is killed while people register. What was acknowledged is there with
// its event, and no address is lost or anybody's twice.
func TestKilledWhileRegistering(t *testing.T) {
	t.Parallel()
	moments := rand.New(rand.NewPCG(rand.Uint64(), 0))
	port := kit.FreePort(t)
	config := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(config, fmt.Appendf([]byte(accounts), "bus: {listen: '127.0.0.1:%d'}\n", port), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &town{tries: map[string][]string{}, acked: map[string]string{}, http: http.Client{Timeout: timeout}}
	server := process.Serve(t, config)
	round := 0
	for end := time.Now().Add(registering); round < *kills && time.Now().Before(end); round++ {
		w.mu.Lock()
		w.url = server.URL
		w.mu.Unlock()
		wait, enough := w.people(round), w.count()+1+moments.IntN(4)
		process.Eventually(t, time.Minute, func() error {
			if n := w.count(); n < enough {
				return fmt.Errorf("%d of %d registrations", n, enough)
			}
			return nil
		})
		server.Kill() // at any moment of those under way
		wait()
		server = process.Serve(t, config)
	}
	w.url = server.URL
	idle(t, server)
	t.Logf("%d of %d addresses acknowledged around %d kills", len(w.acked), len(w.tries), round)
	if round == 0 || len(w.acked) == 0 {
		t.Fatal("nothing was killed")
	}
	users := w.settle(t)
	idle(t, server)
	w.census(t, users)
	told(t, fmt.Sprintf("nats://127.0.0.1:%d", port), users)
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	verify(t, config)
	if err := server.Stop(); err != nil {
		t.Errorf("stopping: %v\n%s", err, server.Log())
	}
	verify(t, config)
}

// settle logs in to every address that was acknowledged. One of which nothing
// is known is somebody's, by one of the passwords that were tried, or is free.
// It returns the users by their addresses.
func (w *town) settle(t *testing.T) map[string]string {
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
			t.Errorf("%s is nobody's, and can't be registered; acknowledged was %q", address, w.acked[address])
			continue
		}
		process.Eventually(t, time.Minute, func() (err error) {
			users[address], err = w.user(address, "the password of the last")
			return err
		})
	}
	return users
}

// census compares the users that there are with those that were found.
func (w *town) census(t *testing.T, want map[string]string) {
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
				t.Errorf("%s is the user %s, who logs in is %q", u.Address, u.UUID, want[u.Address])
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

// told compares the Register events of the log with the users that there are:
// each has one.
func told(t *testing.T, url string, users map[string]string) {
	t.Helper()
	js := natsserver.JetStream(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log, err := js.OrderedConsumer(ctx, "EVENTS", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"events.*.Register.Users.>"}})
	if err != nil {
		t.Fatal(err)
	}
	heard := map[string]string{} // event by address
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
		if heard[datas.Login] != "" && heard[datas.Login] != e.ID {
			t.Errorf("%s is told twice", datas.Login)
		}
		heard[datas.Login] = e.ID
		if users[datas.Login] != e.UUID || strings.Contains(string(m.Data()), "password") {
			t.Errorf("told %s, though the user is %q", m.Data(), users[datas.Login])
		}
	}
	if len(heard) != len(users) {
		t.Errorf("%d Register events, want %d", len(heard), len(users))
	}
}
