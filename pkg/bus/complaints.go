package bus

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// complainEvery is how often the same error is logged: the server reports a
// missing right for every single message.
const complainEvery = time.Minute

// complaints logs what the connection reports on its own.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // by the kind of error
}

func (c *complaints) hear(_ *nats.Conn, s *nats.Subscription, err error) {
	// What is quoted is a subject, of which there may be any number.
	kind, _, _ := strings.Cut(err.Error(), `"`)
	if !c.due(kind) {
		return
	}
	subject := ""
	if s != nil {
		subject = s.Subject
	}
	c.log.Warn("the bus reports an error (the same is logged once a minute)", "error", err, "subject", subject)
}

func (c *complaints) due(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, known := c.last[kind]; known && time.Since(last) < complainEvery {
		return false
	}
	if c.last == nil {
		c.last = map[string]time.Time{}
	}
	c.last[kind] = time.Now()
	return true
}
