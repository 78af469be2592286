package bus

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// asyncErrorInterval is how often the same error is logged: the server reports a
// missing permission for every single message.
const asyncErrorInterval = time.Minute

// asyncErrors logs the errors that the connection reports outside of any call.
type asyncErrors struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // by kind of error
}

func (a *asyncErrors) report(_ *nats.Conn, s *nats.Subscription, err error) {
	// The quoted part is a subject, of which there may be any number.
	kind, _, _ := strings.Cut(err.Error(), `"`)
	if !a.due(kind) {
		return
	}
	subject := ""
	if s != nil {
		subject = s.Subject
	}
	a.log.Warn("the bus reports an error (the same is logged once a minute)", "error", err, "subject", subject)
}

func (a *asyncErrors) due(kind string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, known := a.last[kind]; known && time.Since(last) < asyncErrorInterval {
		return false
	}
	if a.last == nil {
		a.last = map[string]time.Time{}
	}
	a.last[kind] = time.Now()
	return true
}
