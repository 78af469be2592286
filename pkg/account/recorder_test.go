package account_test

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/store/driver"
)

// clock is the time of a fixture.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// recorder records the events of a fixture.
type recorder struct {
	mu   sync.Mutex
	all  []*event.Envelope
	raw  strings.Builder
	read int // of those that ask for mails
}

func (t *recorder) Committed(_ string, p driver.Pending) {
	var e event.Envelope
	if err := json.Unmarshal(p.Payload, &e); err != nil {
		panic(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, &e)
	t.raw.Write(p.Payload)
}

// of returns the events of a name and store.
func (t *recorder) of(name event.Name, store string) (found []*event.Envelope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.all {
		if e.Event == name && e.Store == store {
			found = append(found, e)
		}
	}
	return found
}

// mailRecorder records mails, or fails.
type mailRecorder struct {
	mu   sync.Mutex
	all  []sentMail
	fail error // instead
	last error // having kept the mail nevertheless
}

func (b *mailRecorder) Send(_ context.Context, m mail.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	l := sentMail{Message: m, kind: m.Subject}
	for _, word := range strings.Fields(m.Text) {
		if u, err := url.Parse(word); err == nil && u.Host != "" {
			l.token = u.Query().Get("token")
		}
	}
	b.all = append(b.all, l)
	return b.last
}

func (b *mailRecorder) to(address string) (found []sentMail) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.all {
		if l.To == address {
			found = append(found, l)
		}
	}
	return found
}

func (b *mailRecorder) failWith(fail, last error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail, b.last = fail, last
}
