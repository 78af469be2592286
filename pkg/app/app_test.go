package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/internal/logbuffer"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/test/kit"
)

const books = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Books:
    expose: {list: true, restrict: {delete: true}}
    uuid: client
    policy: {default: allow, update: "false"}
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
`

// place is a folder with a configuration, and what a belfry there has logged.
type place struct {
	*testing.T
	folder string
	config *config.Config
	logged *kit.Tail
}

// withStores opens the stores of a stopped belfry, as a command does.
func (p *place) withStores(use func(*store.Set) error) error {
	compiled, err := plan.Compile(p.config)
	if err != nil {
		return err
	}
	return open.WithStores(p.Context(), compiled, "test", use, nil)
}

func newPlace(t *testing.T, text string) *place {
	t.Helper()
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.config = p.load(text)
	return p
}

func (p *place) load(text string) *config.Config {
	p.Helper()
	c, err := config.Load(p.write("belfry.yaml", text), os.LookupEnv)
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *place) path(name string) string { return filepath.Join(p.folder, name) }

func (p *place) write(name, content string) string {
	p.Helper()
	if err := os.WriteFile(p.path(name), []byte(content), 0o600); err != nil {
		p.Fatal(err)
	}
	return p.path(name)
}

func (p *place) log() *slog.Logger {
	return slog.New(logbuffer.NewHandler(slog.NewTextHandler(p.logged, nil), logbuffer.New()))
}

// start starts a belfry that is stopped at the end of the test, if it still
// runs then.
func (p *place) start() *App {
	p.Helper()
	a, err := Start(p.Context(), p.config, p.log())
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = a.Stop(context.Background()) })
	return a
}

func (p *place) stop(a *App) {
	p.Helper()
	if err := a.Stop(p.Context()); err != nil {
		p.Fatal(err)
	}
}

func (p *place) do(a *App, method, path, body string) (status int, text string) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), method, "http://"+a.HTTPAddress()+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	return p.send(req)
}

func (p *place) send(req *http.Request) (status int, text string) {
	p.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		p.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// metrics reads the metrics from their own port.
func (p *place) metrics(a *App) string {
	p.Helper()
	res, err := http.Get("http://" + a.now().MetricsAddress + "/metrics")
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.Fatalf("metrics: %s, %v, %s", res.Status, err, text)
	}
	return string(text)
}

// console is what the console of a process shows.
func (a *App) console() *console.Options { return a.wiring.views.Options(a.now(), nil) }

func (p *place) want(a *App, method, path, body string, status int) {
	p.Helper()
	if got, text := p.do(a, method, path, body); got != status {
		p.Fatalf("%s %s: %d, want %d: %s", method, path, got, status, text)
	}
}

// gone waits until there is nothing at a path.
func (p *place) gone(a *App, path string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		if status, _ := p.do(a, "GET", path, ""); status != http.StatusNotFound {
			return fmt.Errorf("%s is there: %d", path, status)
		}
		return nil
	})
}

func occupy(t *testing.T) net.Listener {
	t.Helper()
	// No other process must take the port between its release and the next start.
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(kit.FreePort(t))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// A failed start releases everything: the next one succeeds as soon as the cause is
// removed.
func TestAFailedStartReleasesEverything(t *testing.T) {
	for name, c := range map[string]struct {
		hinder func(p *place) (unhinder func())
		says   string
	}{
		"the data folder is a file": {func(p *place) func() {
			file := p.write("data", "")
			return func() { _ = os.Remove(file) }
		}, "can't create the data folder"},
		"a backend's folder is a file": {func(p *place) func() {
			p.config = p.load(books + "backends: {default: {folder: objects}}\n")
			file := p.write("objects", "")
			return func() { _ = os.Remove(file) }
		}, "backend default"},
		"the bus's port is taken": {func(p *place) func() {
			l := occupy(p.T)
			p.config.Bus.Listen = l.Addr().String()
			return func() { _ = l.Close() }
		}, "bus"},
		"HTTP's port is taken": {func(p *place) func() {
			l := occupy(p.T)
			p.config.Listen = l.Addr().String()
			return func() { _ = l.Close() }
		}, "free the port, or choose another with --listen"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, books)
			unhinder := c.hinder(p)
			for range 2 {
				_, err := Start(t.Context(), p.config, p.log())
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("it started, or does not say %q: %v", c.says, err)
				}
			}
			unhinder()
			a := p.start()
			p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
			p.stop(a)
		})
	}
}

func TestACanceledStartReleasesEverything(t *testing.T) {
	p := newPlace(t, books)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := Start(ctx, p.config, p.log()); err == nil {
		// Start did not check the context; then the app must serve.
		p.stop(a)
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("the reason is missing: %v", err)
	}
	p.stop(p.start())
}

func TestAStoppedAppServesNothing(t *testing.T) {
	p := newPlace(t, books)
	for range 3 {
		a := p.start()
		p.stop(a)
		p.stop(a) // once is enough, twice is harmless
	}
}

// A stop publishes what waits, so that nothing is left to the next start.
func TestAStopPublishesEveryEvent(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	for range 50 {
		p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
	}
	p.stop(a)
	report, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
	if err != nil || report.Pending != 0 {
		t.Errorf("events are pending: %+v, %v", report, err)
	}
}

// A bus that is unavailable neither fails a stop nor uses up its time; the events
// are published after the next start, and the copies are updated.
func TestAStopSucceedsWhileTheBusIsUnavailable(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	if err := a.Bus().StopServer(); err != nil {
		t.Fatal(err)
	}
	p.want(a, "POST", "/books", `{"uuid":"solaris","author":"lem"}`, http.StatusCreated)
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	if err := a.Stop(ctx); err != nil || ctx.Err() != nil {
		t.Fatal(err, ctx.Err())
	}
	if !strings.Contains(p.logged.String(), "events are not published; they stay in their records") {
		t.Errorf("it is not logged: %s", p.logged)
	}
	report, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
	if err != nil || report.Pending == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	a = p.start()
	kit.WaitUntil(p, func() error {
		if _, author := p.do(a, "GET", "/authors/lem", ""); !strings.Contains(author, "solaris") {
			return errors.New(author)
		}
		return nil
	})
}

// A stop whose context ends stops every part all the same, and is no failure: nothing that was acknowledged is lost.
func TestAStopWhoseContextEndsStopsEveryPart(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Stop(ctx); err != nil {
		t.Error(err)
	}
	p.stop(p.start())
}

func TestReadiness(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	ready := func() error {
		if status, text := p.do(a, "GET", "/readyz", ""); status != http.StatusOK ||
			strings.Contains(text, "degraded") {
			return errors.New(text)
		}
		return nil
	}
	kit.WaitUntil(p, ready) // it says that the bus is unavailable when that takes two seconds to reply
	if err := a.Bus().StopServer(); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(p, func() error {
		if status, text := p.do(a, "GET", "/readyz", ""); status != http.StatusOK ||
			!strings.Contains(text, `"degraded":["the bus is unavailable`) {
			return errors.New(text)
		}
		return nil
	})
	p.want(a, "GET", "/healthz", "", http.StatusOK)
	p.want(a, "GET", "/livez", "", http.StatusOK)
	p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
	if err := a.Bus().StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(p, ready)
	a.lifetime.Stop()
	if _, err := a.wiring.health.Ready(t.Context()); !errors.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "stopping") {
		t.Errorf("while it stops: %v", err)
	}
}

// A process that is asked to stop is first not ready, and serves what load balancers send until they notice.
func TestAProcessServesUntilLoadBalancersNoticeThatItStops(t *testing.T) {
	p := newPlace(t, books+"metrics: {listen: '127.0.0.1:0'}\n")
	a := p.start()
	withdrawn := make(chan error)
	go func() { withdrawn <- a.Withdraw(time.Hour) }()
	kit.WaitUntil(p, func() error {
		if status, text := p.do(a, "GET", "/readyz", ""); status != http.StatusServiceUnavailable ||
			!strings.Contains(text, "belfry is stopping") {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
	p.want(a, "GET", "/livez", "", http.StatusOK)
	p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
	if text := p.metrics(a); !strings.Contains(text, "\nbelfry_ready 0\n") {
		t.Error("the metrics say that it is ready")
	}
	failure := errs.New(errs.Unavailable, "backend default has failed")
	a.lifetime.Fail(failure)
	if err := <-withdrawn; !errors.Is(err, failure) {
		t.Errorf("a failure does not end it: %v", err)
	}
	if err := a.Withdraw(0); err != nil {
		t.Error(err)
	}
}

func TestWarnings(t *testing.T) {
	p := newPlace(t, books+`
authentication: {providers: {email: {}, github: {clientID: a, clientSecret: SECRET}}}
`)
	p.stop(p.start())
	const hosts = "localhost and by its IP address only"
	if strings.Contains(p.logged.String(), hosts) {
		t.Errorf("a warning about hosts on loopback:\n%s", p.logged)
	}
	p.config.Listen = "0.0.0.0:0"
	p.stop(p.start())
	for _, want := range []string{
		hosts, `store=Authors operations="create, get, update, delete"`,
		`store=Books operations="create, get, list"`,
		"mails are written into a folder, not sent",
	} {
		if !strings.Contains(p.logged.String(), want) {
			t.Errorf("no warning with %s in\n%s", want, p.logged)
		}
	}
	for _, not := range []string{"store=Users", "store=Sessions", "SECRET"} {
		if strings.Contains(p.logged.String(), not) {
			t.Errorf("%s in\n%s", not, p.logged)
		}
	}
}

func TestBanner(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	if got := a.Banner(""); !strings.Contains(got, "http://"+a.HTTPAddress()) ||
		!strings.Contains(got, "inside this process only") || !strings.Contains(got, p.config.Data) {
		t.Error(got)
	}
	p.stop(a)
	p.config.Bus.Listen = "127.0.0.1:0"
	if got := p.start().Banner("http://link"); !strings.Contains(got, "  admin   http://link\n") ||
		!strings.Contains(got, "nats://127.0.0.1:") {
		t.Error(got)
	}
}

func TestMetrics(t *testing.T) {
	p := newPlace(t, "metrics: {listen: 127.0.0.1:0}\n"+books)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	kit.WaitUntil(p, func() error {
		text := p.metrics(a)
		for _, want := range []string{
			`belfry_objects{store="Authors"} 1`, `belfry_objects{store="Users"} 0`,
			`belfry_events_pending{store="Authors"} 0`, "belfry_events_published_total 1",
			"belfry_events_failures_total 0", "belfry_bus_up 1",
			`belfry_listener_pending{listener="mapping"} 0`, `belfry_listener_pending{listener="cascade"} 0`,
			"belfry_http_requests_total{", "go_goroutines ", "process_resident_memory_bytes ",
		} {
			if !strings.Contains(text, "\n"+want) {
				return errors.New("no " + want + " in\n" + text)
			}
		}
		return nil
	})
}
