package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/pkg/client"
	"belfry/test/kit"
)

// twoConfigurations are two whose rules and schemas belong together: each takes objects of its own version, by the
// rule, and by the schema. The rule comes first: a request that met the rule of one and the schema of the other
// would be 400.
const twoConfigurations = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
metrics: {listen: "127.0.0.1:0"}
stores:
  Versions: {expose: {list: true}, schema: v%[1]d.json, policy: {create: input.v == %[1]d, get: "true", list: "true"}}
  Authors: {expose: {events: true}, uuid: client, policy: {default: allow, update: "true"}, maxObjectSize: 1%[1]dKiB}
  Books: {expose: {}, map: {Authors: {key: author, target: books, fields: title}}}
`

// follower reads the stream of events, and connects again as a browser does.
type follower struct {
	seen map[string]int // by uuid
	ends atomic.Int64   // streams that ended with the reason that the configuration has changed
	mu   sync.Mutex

	begins atomic.Int64 // streams that have said that every later event will follow
}

// read reads one stream from an id on, and returns the last id.
func (f *follower) read(ctx context.Context, url, last string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events?store=Authors&event=Store.Saved", nil)
	if err != nil {
		return last
	}
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return last
	}
	defer func() { _ = res.Body.Close() }()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "id: "):
			last = line[len("id: "):]
		case line == "event: ready":
			f.begins.Add(1)
		case strings.Contains(line, "the configuration of the server has changed"):
			f.ends.Add(1)
		case strings.HasPrefix(line, "data: ") && strings.Contains(line, `"uuid":"`):
			_, rest, _ := strings.Cut(line, `"uuid":"`)
			uuid, _, _ := strings.Cut(rest, `"`)
			f.mu.Lock()
			f.seen[uuid]++
			f.mu.Unlock()
		}
	}
	return last
}

// However often the configuration is reloaded: no request fails, none meets two configurations, no event is missed by
// those who follow, and copies converge.
func TestReloadsUnderLoad(t *testing.T) {
	const reloads = 12
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	for v := 1; v <= 2; v++ {
		p.write(fmt.Sprintf("v%d.json", v), fmt.Sprintf(`{"properties": {"v": {"const": %d}}}`, v))
	}
	p.config = p.load(fmt.Sprintf(twoConfigurations, 1))
	a, _ := p.reloadable()
	base := "http://" + a.HTTPAddress()
	conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load, following sync.WaitGroup
	var requests, denied, created atomic.Int64
	clients := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	post := func(path, body string, want ...int) int {
		res, err := clients.Post(base+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Errorf("POST %s: %v", path, err)
			return 0
		}
		defer func() { _ = res.Body.Close() }()
		text, _ := io.ReadAll(res.Body)
		requests.Add(1)
		for _, status := range want {
			if res.StatusCode == status {
				return status
			}
		}
		t.Errorf("POST %s %s: %s: %s", path, body, res.Status, text)
		return res.StatusCode
	}
	follow := &follower{seen: map[string]int{}}
	begun := make(chan struct{})
	followed, unfollow := context.WithCancel(t.Context())
	defer unfollow()
	following.Go(func() {
		last := ""
		for followed.Err() == nil {
			last = follow.read(followed, base, last)
		}
	})
	kit.WaitFor(t, "the stream begins", func() bool { return follow.begins.Load() > 0 })
	for w := 1; w <= 2; w++ {
		load.Go(func() { // of both versions, all the time
			for ctx.Err() == nil {
				if post("/versions", fmt.Sprintf(`{"v":%d}`, w), http.StatusCreated,
					http.StatusUnauthorized) == http.StatusUnauthorized {
					denied.Add(1)
				}
			}
		})
	}
	load.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			post("/authors", fmt.Sprintf(`{"uuid":"a%d"}`, n), http.StatusCreated)
			created.Store(int64(n + 1))
			post("/books", fmt.Sprintf(`{"author":"a%d","title":"t"}`, n), http.StatusCreated)
			if n == 0 {
				close(begun)
			}
		}
	})
	load.Go(func() {
		authors := client.New(conn).Store("Authors")
		for n := 0; ctx.Err() == nil; n++ {
			if _, err := authors.Save(context.Background(), map[string]any{"uuid": fmt.Sprint("bus", n)}); err != nil {
				t.Errorf("over the bus: %v", err)
			}
			requests.Add(1)
		}
	})
	<-begun
	for n := range reloads {
		p.write("belfry.yaml", fmt.Sprintf(twoConfigurations, 2-n%2))
		before := requests.Load()
		if r, err := a.Reload(t.Context()); err != nil || len(r.Changed) == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		kit.WaitFor(t, "requests follow the reload", func() bool { return requests.Load() > before+20 })
	}
	stop()
	load.Wait()
	kit.WaitFor(t, "every author was received", func() bool {
		follow.mu.Lock()
		defer follow.mu.Unlock()
		for n := range int(created.Load()) {
			if follow.seen[fmt.Sprint("a", n)] == 0 {
				return false
			}
		}
		return true
	})
	unfollow()
	following.Wait()
	for uuid, n := range follow.seen {
		if n > 1 {
			t.Errorf("%s was received %d times", uuid, n)
		}
	}
	if follow.ends.Load() == 0 || denied.Load() == 0 {
		t.Errorf("%d streams ended, %d requests were denied", follow.ends.Load(), denied.Load())
	}
	t.Logf("%d requests, %d streams ended, %d authors", requests.Load(), follow.ends.Load(), created.Load())
	p.stop(a)
	if n := p.differences(); n > 0 {
		t.Errorf("%d differences", n)
	}
	if strings.Contains(p.logged.String(), "level=ERROR") {
		t.Error(p.logged)
	}
}
