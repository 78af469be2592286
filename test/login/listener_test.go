package login

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app"
	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/provider"
)

// inside starts belfry in this process.
func inside(t *testing.T) (*fixture, *app.App) {
	t.Helper()
	w := &fixture{t, &place{providers: provider.Start(t), folder: t.TempDir()}}
	file := filepath.Join(w.folder, "belfry.yaml")
	w.must(os.WriteFile(file, []byte("listen: 127.0.0.1:0\n"+fmt.Sprintf(settings, "", 0)+providersOf(w.providers)),
		0o600))
	c, err := config.Load(file, os.LookupEnv)
	w.must(err)
	a, err := app.Start(t.Context(), c, slog.New(slog.DiscardHandler))
	w.must(err)
	t.Cleanup(func() { w.must(a.Stop(context.Background())) })
	w.url = c.BaseURLAt(a.HTTPAddress())
	w.providers.Register(w.url + "/auth/callback")
	return w, a
}

// completer is a listener that completes users at Register.
type completer struct {
	ackWait time.Duration
	app     *app.App
	bus     *bus.Bus
	users   *store.Store
	fail    func(ctx context.Context, attempt int) error // before it is done
	calls   atomic.Int64
}

func (w *fixture) completer(a *app.App) *completer {
	w.Helper()
	b, err := bus.Open(w.Context(),
		bus.Options{Name: "completer", URL: a.Bus().ClientURL(), Logger: slog.New(slog.DiscardHandler)})
	w.must(err)
	w.Cleanup(func() { _ = b.Close(context.Background()) }) // a test may have cut it off
	return &completer{app: a, bus: b, users: a.Set().Store("Users"),
		fail: func(context.Context, int) error { return nil }}
}

// start starts the listener and returns a function that stops it.
func (c *completer) start() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = listener.Run(ctx, c.bus, slog.New(slog.DiscardHandler), listener.Spec{
			Name: "completer", Filters: []string{event.Filter(event.Register, "Users")}, Handler: c.handle,
			Start: listener.StartAll(), AckWait: c.ackWait, Drain: time.Millisecond, Concurrency: 4,
		})
	}()
	return func() { cancel(); <-ended }
}

func (c *completer) handle(ctx context.Context, e *listener.Event) error {
	c.calls.Add(1)
	if err := c.fail(ctx, e.Attempt); err != nil {
		return err
	}
	datas, err := object.Parse(e.Datas)
	if err != nil {
		return err
	}
	name, _ := datas.Text("name")
	fields := object.Object{}
	fields.Set("displayName", name)
	fields.Set("came", e.Ctx.Address)
	_, err = c.users.Update(ctx, fields, store.UpdateOptions{UUID: e.UUID})
	return err
}

// completed waits until a browser's user is complete.
func (b *browser) completed(called, ident string) {
	b.Helper()
	eventually(b, func() error {
		me := b.me()
		if me["displayName"] != called || me["came"] != "127.0.0.1" {
			return fmt.Errorf("the user is %v", me)
		}
		return nil
	})
	b.waitForIdents(ident)
	if me := b.me(); me["displayName"] != called {
		b.Errorf("the user is %v", me)
	}
}

// Users are completed also when the listener fails or is restarted.
func TestAListenerCompletesUsers(t *testing.T) {
	for what, test := range map[string]func(w *fixture, c *completer, register func(id string) *browser){
		"at once": func(_ *fixture, c *completer, register func(string) *browser) {
			defer c.start()()
			register("1").completed("Ada 1", "1_github")
		},
		"begun later": func(_ *fixture, c *completer, register func(string) *browser) {
			first, second := register("1"), register("2")
			defer c.start()()
			first.completed("Ada 1", "1_github")
			second.completed("Ada 2", "2_github")
		},
		"after errors": func(_ *fixture, c *completer, register func(string) *browser) {
			c.fail = func(_ context.Context, attempt int) error {
				if attempt < 3 {
					return errors.New("not now")
				}
				return nil
			}
			defer c.start()()
			register("1").completed("Ada 1", "1_github")
		},
		"after a panic": func(_ *fixture, c *completer, register func(string) *browser) {
			c.fail = func(_ context.Context, attempt int) error {
				if attempt == 1 {
					panic("a mistake")
				}
				return nil
			}
			defer c.start()()
			register("1").completed("Ada 1", "1_github")
		},
		"after its end in between": func(w *fixture, c *completer, register func(string) *browser) {
			inside, dies := make(chan struct{}, 10), make(chan struct{})
			defer close(dies)
			c.fail = func(context.Context, int) error {
				inside <- struct{}{}
				<-dies
				return errors.New("it has died")
			}
			c.ackWait = time.Second
			end := c.start()
			b := register("1")
			<-inside
			c.bus.Conn().Close() // it can't acknowledge or publish any more
			end()
			again := w.completer(c.app)
			again.ackWait = c.ackWait
			defer again.start()()
			b.completed("Ada 1", "1_github")
		},
	} {
		t.Run(what, func(t *testing.T) {
			w, a := inside(t)
			c := w.completer(a)
			test(w, c, func(id string) *browser {
				w.providers.User(id, "name", "Ada "+id)
				b := w.browser()
				b.mustLogin("github")
				return b
			})
			if c.calls.Load() == 0 {
				t.Error("the listener was not asked")
			}
		})
	}
}

// Users are completed while the mapping listener writes the same objects, for
// each provider and many concurrently.
func TestAListenerCompletesManyUsers(t *testing.T) {
	w, a := inside(t)
	c := w.completer(a)
	defer c.start()()
	browsers, called := map[string]*browser{}, map[string]string{}
	for i := range 5 {
		for _, name := range names {
			id := fmt.Sprint(i)
			w.providers.User(id, "name", name+id)
			b := w.browser()
			b.mustLogin(name)
			browsers[id+"_"+name], called[id+"_"+name] = b, name+id
		}
	}
	for ident, b := range browsers {
		b.completed(called[ident], ident)
	}
	for _, name := range names {
		w.providers.User("0", "name", "Changed")
		b := w.browser()
		b.mustLogin(name)
		b.completed(name+"0", "0_"+name)
	}
	if n := c.calls.Load(); n != int64(len(browsers)) {
		t.Errorf("the listener was asked %d times for %d users", n, len(browsers))
	}
}
