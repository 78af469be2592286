package app

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"belfry/pkg/app/command"
	"belfry/pkg/store"
	"belfry/pkg/wire"
	"belfry/test/kit"
)

// sluggers write objects of Books with the same few slugs, over HTTP and the bus, until they are stopped.
type sluggers struct {
	*place
	running  sync.WaitGroup
	stopped  atomic.Bool
	requests atomic.Int64
	taken    atomic.Int64
}

// startSluggers fails the test for each reply of 500 or above.
func (p *place) startSluggers(a *App) *sluggers {
	p.Helper()
	s := &sluggers{place: p}
	conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(conn.Close)
	overHTTP := func(method, uuid, body string) (int, string) { return p.do(a, method, "/books/"+uuid, body) }
	overBus := func(method, uuid, body string) (int, string) {
		op := map[string]string{http.MethodPut: wire.Update, http.MethodPost: wire.Save,
			http.MethodDelete: wire.Delete}[method]
		req := wire.Request{UUID: uuid}
		if op != wire.Delete {
			req.Object = json.RawMessage(body)
		}
		data, err := json.Marshal(req)
		if err != nil {
			p.Error(err)
		}
		reply, err := conn.Request(wire.Subject("Books", op), data, kit.Limit)
		if err != nil {
			return http.StatusInternalServerError, err.Error()
		}
		status, err := strconv.Atoi(reply.Header.Get(micro.ErrorCodeHeader))
		if err != nil {
			status = http.StatusOK
		}
		return status, string(reply.Data)
	}
	for w := range 4 {
		send := overHTTP
		if w%2 == 1 {
			send = overBus
		}
		s.running.Go(func() { s.write(rand.New(rand.NewPCG(uint64(w), 1)), w%2 == 0, send) })
	}
	p.Cleanup(s.stop)
	return s
}

func (s *sluggers) write(r *rand.Rand, http bool, send func(method, uuid, body string) (int, string)) {
	for !s.stopped.Load() {
		uuid, body := fmt.Sprint("b", r.IntN(15)), fmt.Sprintf(`{"slug":"s%d","isbn":"i%d"}`, r.IntN(18), r.IntN(18))
		method := "PUT"
		switch r.IntN(5) {
		case 0:
			method, body = "DELETE", ""
		case 1, 2:
			if method = "POST"; http {
				body, uuid = fmt.Sprintf(`{"uuid":%q,%s`, uuid, body[1:]), ""
			}
		}
		status, text := send(method, uuid, body)
		if status >= 500 {
			s.Errorf("%s %s %s: %d, %s", method, uuid, body, status, text)
			return
		}
		if status == 409 && strings.Contains(text, "has the same") {
			s.taken.Add(1)
		}
		s.requests.Add(1)
	}
}

// more waits until they have had more replies.
func (s *sluggers) more(n int64) {
	s.Helper()
	before := s.requests.Load()
	kit.WaitFor(s, "writes follow", func() bool { return s.requests.Load() > before+n || s.Failed() })
}

func (s *sluggers) stop() {
	s.stopped.Store(true)
	s.running.Wait()
}

// findings are what a verification says of unique values, by uuid.
func (p *place) findings() map[string]store.UniqueFinding {
	p.Helper()
	r, err := command.Verify.Do(p.Context(), p.config, command.VerifyRequest{})
	if err != nil || r.Unique == nil || len(r.Unique.Waiting) > 0 {
		p.Fatalf("%+v, %v", r, err)
	}
	all := map[string]store.UniqueFinding{}
	for _, f := range r.Unique.Findings {
		all[f.UUID] = f
	}
	return all
}

// Unique values come, change and go beside writers that give objects the same values. No request fails. Once the values
// are collected, no object gets that of another one; those that had it before are named.
func TestReloadsOfUniqueValuesFailNoRequest(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
stores:
  Books: {expose: {list: true}, uuid: client, indexes: [slug], %s policy: {default: allow}}
`
	texts := []string{
		fmt.Sprintf(text, ""), fmt.Sprintf(text, "unique: [slug],"), fmt.Sprintf(text, "unique: [slug, isbn],"),
		fmt.Sprintf(text, "unique: [isbn],"),
	}
	p := newPlace(t, texts[0])
	a, _ := p.reloadable()
	s := p.startSluggers(a)
	for n := range 10 {
		s.more(30)
		p.reload(a, texts[(n+1)%4])
		if n%3 == 0 && (n+1)%4 != 0 {
			p.enforced(a)
		}
	}
	s.more(30)
	p.reload(a, texts[0])
	s.more(30)
	for _, uuid := range []string{"q1", "q2"} { // which nobody changes
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":%q,"slug":"q"}`, uuid), http.StatusCreated)
	}
	before := len(p.logged.String())
	p.reload(a, texts[1])
	s.more(10)
	p.enforced(a)
	named := p.findings()
	s.more(300)
	s.stop()
	found, log := p.findings(), p.logged.String()[before:]
	for uuid, f := range named {
		found[uuid] = f
	}
	objects := map[string][]string{}
	_, list := p.do(a, "GET", "/books?limit=100", "")
	for _, o := range itemsIn(t, list) {
		objects[o.Slug] = append(objects[o.Slug], o.UUID)
	}
	for uuid, f := range found {
		if !strings.Contains(log, "uuid="+uuid+` error="`) {
			t.Errorf("nothing names %s: %+v\n%s", uuid, f, log)
		}
	}
	for slug, uuids := range objects {
		unnamed := 0
		for _, uuid := range uuids {
			if _, is := found[uuid]; !is {
				unnamed++
			}
		}
		if unnamed > 1 {
			t.Errorf("%q have the slug %s, and nothing names them", uuids, slug)
		}
		if unnamed > 0 {
			p.want(a, "POST", "/books", fmt.Sprintf(`{"slug":%q}`, slug), http.StatusConflict)
		}
	}
	if _, first := named["q1"]; len(named) == 0 || first == (named["q2"].UUID != "") {
		t.Errorf("of two objects with one value, one is to be named: %+v", named)
	}
	t.Logf("%d requests, %d refused, %d objects named", s.requests.Load(), s.taken.Load(), len(named))
}

type sluggish struct{ UUID, Slug string }

func itemsIn(t testing.TB, list string) []sluggish {
	t.Helper()
	var l struct{ Items []sluggish }
	if err := json.Unmarshal([]byte(list), &l); err != nil {
		t.Fatal(err, list)
	}
	return l.Items
}

// enforced waits until the unique values of all stores are collected.
func (p *place) enforced(a *App) {
	p.Helper()
	kit.WaitUntil(p, func() error { return degraded(a, "") })
}
