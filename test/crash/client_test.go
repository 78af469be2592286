package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/test/process"
)

// history is what the clients share: what was acknowledged.
type history struct {
	mu      sync.Mutex
	url     string          // of the server that runs now
	facts   []fact          // acknowledged writes
	deleted map[string]bool // parents whose deletion was tried
	acked   int
}

func (w *history) serverURL() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.url
}

func (w *history) moveTo(s *process.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.url = s.URL
}

// count is how many writes have been acknowledged.
func (w *history) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// awaitMore waits until so many more writes have been acknowledged.
func (w *history) awaitMore(t *testing.T, more int) {
	t.Helper()
	enough := w.count() + more
	process.Eventually(t, time.Minute, func() error {
		if n := w.count(); n < enough {
			return fmt.Errorf("%d of %d writes", n, enough)
		}
		return nil
	})
}

func (w *history) acknowledged(f fact) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts = append(w.facts, f)
	w.acked++
}

func (w *history) deleting(parent string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted[parent] = true
}

func (w *history) triedToDelete(parents []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range parents {
		if w.deleted[p] {
			return true
		}
	}
	return false
}

// state is what a client knows of one of its objects.
type state struct {
	exists   bool
	title    string
	parents  []string
	revision uint64
}

// client writes objects that no other client writes, so that it knows what the server must hold.
type client struct {
	history  *history
	rand     *rand.Rand
	http     *http.Client
	store    string // Parents, Children or Tags
	path     string
	uuids    []string
	known    map[string]state
	doubt    map[string][]state // what unanswered requests since the last answered one may have written
	failures []string
}

const (
	parents = 12
	timeout = time.Minute
)

func newClient(w *history, seed uint64, number int, store string) *client {
	c := &client{
		history: w, rand: rand.New(rand.NewPCG(seed, uint64(number))), store: store, path: "/" + strings.ToLower(store),
		http: &http.Client{Timeout: timeout}, known: map[string]state{}, doubt: map[string][]state{},
	}
	n, each := number, 10
	if store == "Parents" {
		n, each = number%3, parents/3
	}
	for i := range each {
		c.uuids = append(c.uuids, fmt.Sprintf("%s-%d", strings.ToLower(store), n*each+i))
	}
	return c
}

// step does one random write. It reports false when the server did not respond: whether the write was
// made is then unknown. It may even be made later, but not after an acknowledged write of the same
// object.
func (c *client) step(n int) bool {
	uuid := c.uuids[c.rand.IntN(len(c.uuids))]
	before := c.known[uuid]
	after := state{exists: true, title: fmt.Sprintf("t%d", n), parents: before.parents}
	method, path := http.MethodPut, c.path+"/"+uuid
	switch kind := c.rand.IntN(10); {
	case !before.exists:
		method, path = http.MethodPost, c.path
		after.parents = c.someParents()
	case kind < 2:
		method, after = http.MethodDelete, state{}
		if c.store == "Parents" {
			c.history.deleting(uuid)
		}
	case kind < 5:
		after.parents = c.someParents()
	}
	status, revision, err := c.send(method, path, uuid, after)
	if err != nil || status >= 500 {
		c.doubt[uuid] = append(c.doubt[uuid], after)
		return false
	}
	switch {
	case status == http.StatusNotFound && (c.mayBeDeleted(uuid) || c.inDoubt(uuid, func(s state) bool { return !s.exists })):
		c.known[uuid] = state{}
		return true
	case status == http.StatusConflict && c.inDoubt(uuid, func(s state) bool { return s.exists }):
		c.known[uuid] = state{exists: true, parents: after.parents}
		return true
	case status/100 != 2:
		c.fail("%s %s: status %d, though %+v was acknowledged", method, path, status, before)
		return true
	}
	after.revision = revision
	f := fact{store: c.store, uuid: uuid, revision: revision}
	if !after.exists {
		f.after = max(1, before.revision)
	}
	c.history.acknowledged(f)
	c.known[uuid] = after
	delete(c.doubt, uuid)
	return true
}

// inDoubt reports whether one of the states that an object may be in matches.
func (c *client) inDoubt(uuid string, matches func(state) bool) bool {
	return slices.ContainsFunc(c.doubt[uuid], matches)
}

// mayBeDeleted reports whether a cascade may have deleted an object, whose parent may be that of an
// unanswered request.
func (c *client) mayBeDeleted(uuid string) bool {
	orphaned := func(s state) bool { return c.history.triedToDelete(s.parents) }
	return c.store == "Children" && (orphaned(c.known[uuid]) || c.inDoubt(uuid, orphaned))
}

func (c *client) someParents() []string {
	if c.store == "Parents" {
		return nil
	}
	some := []string{fmt.Sprintf("parents-%d", c.rand.IntN(parents))}
	if c.store == "Tags" && c.rand.IntN(2) == 0 {
		some = append(some, fmt.Sprintf("parents-%d", c.rand.IntN(parents)))
	}
	return some
}

func (c *client) send(method, path, uuid string, s state) (status int, revision uint64, err error) {
	var body io.Reader
	if s.exists {
		o := map[string]any{"uuid": uuid, "title": s.title}
		switch c.store {
		case "Children":
			o["parent"] = s.parents[0]
		case "Tags":
			o["parents"] = s.parents
		}
		data, err := json.Marshal(o)
		if err != nil {
			return 0, 0, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, c.history.serverURL()+path, body)
	if err != nil {
		return 0, 0, err
	}
	if s.exists {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if res.StatusCode >= 500 && (res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "") {
		c.fail("%s %s: status %d, Retry-After %q: %s", method, path, res.StatusCode, res.Header.Get("Retry-After"), text)
	}
	revision, _ = strconv.ParseUint(strings.Trim(res.Header.Get("ETag"), `"`), 10, 64)
	return res.StatusCode, revision, err
}

// audit compares every object with what is known of it, and reads what unanswered requests have
// written.
func (c *client) audit() error {
	for _, uuid := range c.uuids {
		now, err := c.get(uuid)
		if err != nil {
			return err
		}
		known := c.known[uuid]
		switch {
		case same(now, known), c.inDoubt(uuid, func(s state) bool { return same(now, s) }):
		case !now.exists && c.mayBeDeleted(uuid):
		default:
			c.fail("%s %s is %+v; acknowledged was %+v, in doubt %+v", c.store, uuid, now, known, c.doubt[uuid])
		}
		c.known[uuid] = now
		delete(c.doubt, uuid)
	}
	return nil
}

func (c *client) get(uuid string) (state, error) {
	res, err := c.http.Get(c.history.serverURL() + c.path + "/" + uuid)
	if err != nil {
		return state{}, err
	}
	defer func() { _ = res.Body.Close() }()
	switch res.StatusCode {
	case http.StatusNotFound:
		return state{}, nil
	case http.StatusOK:
	default:
		return state{}, fmt.Errorf("GET %s/%s: status %d", c.path, uuid, res.StatusCode)
	}
	var o struct {
		Title   string
		Parent  string
		Parents []string
	}
	if err := json.NewDecoder(res.Body).Decode(&o); err != nil {
		return state{}, err
	}
	s := state{exists: true, title: o.Title, parents: o.Parents}
	if o.Parent != "" {
		s.parents = []string{o.Parent}
	}
	s.revision, err = strconv.ParseUint(strings.Trim(res.Header.Get("ETag"), `"`), 10, 64)
	return s, err
}

// same compares what clients set. Revisions also change when workers write a copy.
func same(a, b state) bool {
	return a.exists == b.exists && a.title == b.title && strings.Join(a.parents, " ") == strings.Join(b.parents, " ")
}

func (c *client) fail(format string, args ...any) {
	c.failures = append(c.failures, fmt.Sprintf(format, args...))
}
