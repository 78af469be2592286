package pairs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tidwall/gjson"

	"belfry/pkg/client"
	"belfry/pkg/interceptor"
	"belfry/pkg/object"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

const patience = time.Minute

// world is one belfry with its interceptor, which cells share one after the other.
type world struct {
	*testing.T               // of the cell
	whole         *testing.T // of the world
	kind, backend string     // the backend of the configuration
	data          string     // its folder
	found         string     // by the verification of the cells
	folder, text  string
	server        *process.Server // nil while it is stopped
	conn          *nats.Conn
	end           func() // of the interceptor
	tokens        map[string]string
}

func newWorld(t *testing.T, kind string) *world {
	w := &world{T: t, whole: t, kind: kind, folder: t.TempDir(), tokens: map[string]string{"": ""}}
	w.data, w.backend = "data", backends[kind]("pairs")
	return w
}

// config writes a configuration, and returns its path.
func (w *world) config(text string) string {
	w.Helper()
	w.text = text
	return w.write("belfry.yaml", text+"data: ./"+w.data+"\nbackends: {default: "+w.backend+"}\n")
}

func (w *world) write(name, text string) string {
	w.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// serve starts belfry and its interceptor.
func (w *world) serve(text string) {
	w.Helper()
	w.server = process.Serve(w.whole, w.config(text))
	conn, err := nats.Connect(w.server.Bus, nats.Timeout(kit.Limit))
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- interceptor.Serve(ctx, conn, interceptor.Spec{Name: "editor", Ops: []string{"save", "update"},
			Stores: []string{"Cooks", "Recipes", "Ratings"}, Handler: edit})
	}()
	kit.WaitUntil(w, func() error {
		_, err := natsserver.Request(conn, interceptor.Subject("update", "Cooks", "editor"), []byte(`{}`))
		return err
	})
	w.conn, w.end = conn, func() { cancel(); <-done; conn.Close() }
}

// edit is the interceptor: an object with the property edit has what that says.
func edit(_ context.Context, r interceptor.Request) interceptor.Response {
	if patch, err := object.Decode(object.Field(r.Object, "edit")); err == nil {
		patch["edit"] = []byte("null")
		return interceptor.Amend(patch)
	}
	return interceptor.Allow()
}

// reload has the running belfry read another configuration.
func (w *world) reload(text string) {
	w.Helper()
	w.run(0, "reload", "--config", w.config(text))
}

// close ends the interceptor, and then belfry: as asked for, or as by a crash.
func (w *world) close(crash bool) {
	w.Helper()
	w.end()
	if crash {
		w.server.Kill()
	} else if err := w.server.Stop(); err != nil {
		w.Fatalf("%v\n%s", err, w.server.Log())
	}
	w.server = nil
}

// settle waits until nothing is pending and all existing objects are done.
func (w *world) settle() {
	w.Helper()
	if err := w.server.Filled(); err != nil {
		w.Fatal(err)
	}
	if err := w.server.Idle(); err != nil {
		w.Fatal(err)
	}
}

// run runs a command, and returns what it prints.
func (w *world) run(exit int, args ...string) string {
	w.Helper()
	out, errOut, got, err := process.Run(process.Commands(w.T), args...)
	if err != nil || got != exit {
		w.Fatalf("belfry %s: %v, exit %d, want %d\n%s%s", strings.Join(args, " "), err, got, exit, out, errOut)
	}
	return out + errOut
}

// verified requires that belfry verify finds no difference.
func (w *world) verified() {
	w.Helper()
	w.run(0, "verify", "--config", filepath.Join(w.folder, "belfry.yaml"))
}

// login returns the token of a user, who is registered first.
func (w *world) login(user string) string {
	w.Helper()
	if token, ok := w.tokens[user]; ok {
		return token
	}
	body := fmt.Sprintf(`{"register":true,"login":"%s@example.com","password":"the password of %s"}`, user, user)
	r := w.send("", "POST", "/auth/email", body, "Prefer", "return=representation")
	if w.tokens[user] = gjson.Get(r.body, "token").String(); w.tokens[user] == "" {
		w.Fatalf("the login of %s: %d %s", user, r.status, r.body)
	}
	return w.tokens[user]
}

type reply struct {
	status int
	body   string
}

var requests = &http.Client{Timeout: kit.Limit}

func (w *world) request(ctx context.Context, token, method, path, body string, headers ...string) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	res, err := requests.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	return res
}

func (w *world) send(token, method, path, body string, headers ...string) reply {
	w.Helper()
	res := w.request(w.Context(), token, method, path, body, headers...)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Fatal(err)
	}
	return reply{res.StatusCode, string(text)}
}

// cell is one pair in a world. In its texts @ stands for a prefix that no other cell has.
type cell struct {
	*world
	prefix string
	user   string
	header []string
}

func (c *cell) own(text string) string { return strings.ReplaceAll(text, "@", c.prefix) }

// as returns the cell with another user.
func (c *cell) as(user string) *cell {
	c.Helper()
	c.login(user)
	return &cell{c.world, c.prefix, user, nil}
}

// with returns the cell with a header in its requests.
func (c *cell) with(name, value string) *cell {
	return &cell{c.world, c.prefix, c.user, append(slices.Clone(c.header), name, c.own(value))}
}

// do sends a request: "PUT /recipes/@soup {...}".
func (c *cell) do(request string) reply {
	c.Helper()
	method, rest, _ := strings.Cut(c.own(request), " ")
	path, body, _ := strings.Cut(rest, " ")
	return c.send(c.tokens[c.user], method, path, body, c.header...)
}

// says returns an error unless a text has others; those after a ! it must not have.
func (c *cell) says(text string, all []string) error {
	for _, want := range all {
		part, absent := strings.CutPrefix(c.own(want), "!")
		if strings.Contains(text, part) == absent {
			return fmt.Errorf("want %s in %s", want, text)
		}
	}
	return nil
}

// try requires the status of a request, and texts in its reply.
func (c *cell) try(status int, request string, says ...string) reply {
	c.Helper()
	r := c.do(request)
	if err := c.says(r.body, says); err != nil || r.status != status {
		c.Fatalf("%s: %d, want %d: %s\n%v", c.own(request), r.status, status, r.body, err)
	}
	return r
}

// until reads a path until it returns texts.
func (c *cell) until(path string, says ...string) {
	c.Helper()
	process.Eventually(c, patience, func() error { return c.says(c.do("GET "+path).body, says) })
}

// gone reads a path until there is nothing.
func (c *cell) gone(path string) {
	c.Helper()
	process.Eventually(c, patience, func() error {
		if r := c.do("GET " + path); r.status != http.StatusNotFound {
			return fmt.Errorf("%s is %d %s", path, r.status, r.body)
		}
		return nil
	})
}

// kitchen creates two cooks with a recipe each, which the recipe's aggregates say nothing about.
func (c *cell) kitchen() *cell {
	c.Helper()
	c.try(201, `POST /cooks {"uuid":"@ada","name":"Ada","phone":"11"}`)
	c.try(201, `POST /cooks {"uuid":"@bob","name":"Bob","phone":"22"}`)
	c.try(201, `POST /recipes {"uuid":"@soup","cook":"@ada","title":"soup","open":true}`, `"chef":"Ada"`, `"ratings":0`)
	c.try(201, `POST /recipes {"uuid":"@stew","cook":"@bob","title":"stew","open":true}`, `"label":"Bob: 0"`)
	return c
}

// rate creates a rating.
func (c *cell) rate(uuid, recipe string, stars int) reply {
	c.Helper()
	return c.try(201, fmt.Sprintf(`POST /ratings {"uuid":%q,"recipe":%q,"stars":%d,"by":%q}`, uuid, recipe, stars, uuid))
}

// bus returns a client of a store over the bus.
func (c *cell) bus(store string) *client.Store { return client.New(c.conn).Store(store) }

// object returns an object of a request over the bus.
func (c *cell) object(text string) json.RawMessage { return json.RawMessage(c.own(text)) }

// stream reads /events until the test ends, and returns what waits for a message with texts, after those before. That
// returns the messages until then.
func (c *cell) stream(query string) (wait func(says ...string) string) {
	c.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	res := c.request(ctx, c.tokens[c.user], "GET", c.own("/events?"+query), "")
	ended, mu, messages, read := make(chan struct{}), sync.Mutex{}, []string(nil), 0
	go func() {
		defer close(ended)
		event := ""
		for in := bufio.NewScanner(res.Body); in.Scan(); {
			if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
				event = name
			} else if strings.HasPrefix(in.Text(), "data: ") {
				mu.Lock()
				messages = append(messages, event+" "+in.Text())
				mu.Unlock()
			}
		}
	}()
	c.Cleanup(func() { cancel(); _ = res.Body.Close(); <-ended })
	wait = func(says ...string) (until string) {
		c.Helper()
		process.Eventually(c, patience, func() error {
			mu.Lock()
			defer mu.Unlock()
			for i, message := range messages[read:] {
				if c.says(message, says) == nil {
					until = strings.Join(messages[read:read+i+1], "\n")
					read += i + 1
					return nil
				}
			}
			return fmt.Errorf("%s: no message with %q in %q", query, says, messages[read:])
		})
		return until
	}
	wait("ready ")
	return wait
}

// sorted returns the names of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// field returns a value of a reply.
func field(r reply, path string) string { return gjson.Get(r.body, path).String() }
