package crash

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// fault is one way in which connections to a server fail.
type fault struct {
	name        string
	begin       func(p *backing.Proxy)
	unavailable bool // no request succeeds
}

var faults = []fault{
	{"cut", (*backing.Proxy).Cut, true},
	{"slow", func(p *backing.Proxy) { p.Slow(100) }, false},
	{"ended within a reply", func(p *backing.Proxy) { p.Shorten(900) }, false},
	{"reset at the reply", func(p *backing.Proxy) { p.Reset(0) }, true},
	{"silent", (*backing.Proxy).Stall, true},
}

func TestSoakBelfryRecoversFromFaultsOfConnectionsToMongoDB(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(backing.Mongo(t))
	if err != nil {
		t.Fatal(err)
	}
	p := backing.StartProxy(t, u.Host)
	recovers(t, p, fmt.Sprintf("{type: mongodb, url: 'mongodb://%s/?maxPoolSize=1&serverSelectionTimeoutMS=1000&timeoutMS=2000'}", p.Address))
}

func TestSoakBelfryRecoversFromFaultsOfConnectionsToDynamoDB(t *testing.T) {
	t.Parallel()
	p := backing.StartProxy(t, strings.TrimPrefix(backing.Dynoxide(t).URL, "http://"))
	recovers(t, p, fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: 'http://%s'}", p.Address))
}

// recovers lets clients write while connections to the backend fail in one way after another, and has
// belfry recover from each by itself.
func recovers(t *testing.T, p *backing.Proxy, backend string) {
	t.Helper()
	soak := kit.Soak(t, 1)
	port := kit.FreePort(t)
	config := configure(t, backend, fmt.Sprintf("bus: {listen: '127.0.0.1:%d'}\n", port))
	w := &history{deleted: map[string]bool{}}
	all := clients(w, soak.Seed(), 1)
	server := startsOnceBackendRecovers(t, p, config)
	w.moveTo(server)
	received := record(t, fmt.Sprintf("nats://127.0.0.1:%d", port))
	stop := make(chan struct{})
	wait := write(all, 0, stop)
	for soak.More() {
		for _, f := range faults {
			w.awaitMore(t, 5)
			before := w.count()
			f.begin(p)
			if f.unavailable {
				process.Eventually(t, time.Minute, func() error { return notReady(server, "backend default is unavailable") })
			} else {
				w.awaitMore(t, 5)
			}
			p.Heal()
			process.Eventually(t, time.Minute, func() error { return ready(server) })
			t.Logf("%s: %d writes acknowledged during the fault", f.name, w.count()-before)
		}
	}
	w.awaitMore(t, 20)
	close(stop)
	wait()
	idle(t, server) // no write is in flight any more
	audit(t, all)
	t.Logf("%d writes acknowledged", w.count())
	finish(t, server, config, w, received)
}

// startsOnceBackendRecovers starts belfry while its backend is unavailable: it reports that, and starts
// by itself once the backend recovers.
func startsOnceBackendRecovers(t *testing.T, p *backing.Proxy, config string) *process.Server {
	t.Helper()
	p.Cut()
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(kit.FreePort(t)))
	wait := process.ServeLater(t, config, "--listen", address)
	early := &process.Server{URL: "http://" + address}
	process.Eventually(t, time.Minute, func() error { return notReady(early, "belfry is starting and waits for backend default") })
	res, err := http.Get(early.URL + "/parents/x")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("while it starts belfry says %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	p.Heal()
	server := wait()
	if log := server.Log(); !strings.Contains(log, "a backend is unavailable; retrying") {
		t.Errorf("the log does not report the wait: %s", log)
	}
	return server
}

func ready(s *process.Server) error {
	status, text, err := readiness(s)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("/readyz: %d %s", status, text)
	}
	return err
}

func notReady(s *process.Server, says string) error {
	status, text, err := readiness(s)
	if err == nil && (status != http.StatusServiceUnavailable || !strings.Contains(text, says)) {
		err = fmt.Errorf("/readyz: %d %s, want 503 and %q", status, text, says)
	}
	return err
}

func readiness(s *process.Server) (status int, text string, err error) {
	res, err := http.Get(s.URL + "/readyz")
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}
