package route

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

const (
	soon  = 5 * time.Millisecond // a heartbeat, where a test waits for some
	never = 2 * kit.Limit
)

// process is one that shares targets. It ends rounds at once, unless it holds them.
type process struct {
	*Group
	client *bus.Client

	lock sync.Mutex
	ran  []Round
	held []func(error) // nil: none are held
	fail error
}

// start starts a process whose durations a test may change.
func start(t *testing.T, url string, change ...func(*Options)) *process {
	t.Helper()
	c, err := bus.Dial(bus.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{client: c}
	o := Options{
		Bus: c, Logger: slog.New(slog.DiscardHandler), Definition: "d", Run: p.run, Heartbeat: soon, Expiry: never,
		Silence: never, Retry: soon,
	}
	for _, change := range change {
		change(&o)
	}
	p.Group = New(o)
	p.Start()
	t.Cleanup(func() {
		p.Close()
		c.Close()
	})
	return p
}

func (p *process) run(r Round, done func(error)) {
	p.lock.Lock()
	p.ran = append(p.ran, r)
	hold, err := p.held != nil, p.fail
	if hold {
		p.held = append(p.held, done)
	}
	p.lock.Unlock()
	if !hold {
		done(err)
	}
}

func (p *process) hold() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.held = []func(error){}
}

// release ends the rounds that are held.
func (p *process) release() {
	p.lock.Lock()
	held := p.held
	p.held = nil
	p.lock.Unlock()
	for _, done := range held {
		done(nil)
	}
}

func (p *process) rounds() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.ran)
}

// ready waits until a process receives what is sent to it.
func ready(t *testing.T, p *process) {
	t.Helper()
	kit.WaitFor(t, "it receives messages", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.receivesItself
	})
}

// together waits until all processes know each other.
func together(t *testing.T, all ...*process) {
	t.Helper()
	kit.WaitFor(t, "all processes know each other", func() bool {
		for _, p := range all {
			if p.Stats().Members != len(all) {
				return false
			}
		}
		return true
	})
}

// pair starts two processes that know each other.
func pair(t *testing.T, change ...func(*Options)) (asker, owner *process) {
	t.Helper()
	url := serve(t)
	asker, owner = start(t, url, change...), start(t, url, change...)
	together(t, asker, owner)
	return asker, owner
}

func serve(t *testing.T) string {
	t.Helper()
	return natsserver.Serve(t, &server.Options{}).ClientURL()
}

// forward has a process ask for a round of some target that is another's.
func (p *process) forward(t *testing.T) *Forwarded {
	t.Helper()
	for i := range 1000 {
		if f := p.Forward(Round{Target: fmt.Sprint("t", i), Source: "x"}); f != nil {
			return f
		}
	}
	t.Fatal("no target is another's")
	return nil
}

func wait(t *testing.T, f *Forwarded) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	err := f.Wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("the wait does not end")
	}
	return err
}

// stranger is a connection of something else on the bus.
func stranger(t *testing.T, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(url, nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func publish(t *testing.T, c *nats.Conn, subject, text string) {
	t.Helper()
	if err := c.Publish(subject, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := c.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
}

// tap receives what is sent on a subject.
func tap(t *testing.T, url, subject string) <-chan *nats.Msg {
	t.Helper()
	c, received := stranger(t, url), make(chan *nats.Msg, 100_000)
	if _, err := c.ChanSubscribe(subject, received); err != nil {
		t.Fatal(err)
	}
	if err := c.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	return received
}
