package natsapi

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/config"
	"belfry/internal/ratelimit"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/wire"
)

// limits bounds the requests of each client. The bus does not identify the sender of a request. A
// client is the user that it names as actor or, without one, the inbox of its connection.
// Both are the client's word: this keeps a program that sends too much from hindering
// others, and does not stop one that wants to.
type limits struct{ requests, bytes *ratelimit.Clients }

// newLimits makes limits, which continue those of before where they are the same.
func newLimits(o config.BusRates, before limits) limits {
	return limits{before.requests.Continue(o.Requests), before.bytes.Continue(o.Bytes)}
}

// admit counts a request of a client, or returns errs.Limited.
func (l limits) admit(m *nats.Msg, now time.Time) error {
	if l.requests == nil && l.bytes == nil {
		return nil
	}
	key := clientOf(m)
	if l.bytes != nil {
		b := l.bytes.Bucket(key, now)
		if wait := b.Debt(now); wait > 0 {
			return errLimited(wait, "limits.bus.bytes: %d bytes", l.bytes)
		}
		b.Charge(now, len(m.Data))
	}
	if l.requests != nil {
		if wait := l.requests.Bucket(key, now).Take(now); wait > 0 {
			return errLimited(wait, "limits.bus.requests: %d requests", l.requests)
		}
	}
	return nil
}

func errLimited(wait time.Duration, limit string, c *ratelimit.Clients) error {
	e := errs.New(errs.Limited,
		"this client exceeds "+limit+" a second on average are allowed; wait for as many seconds as Retry-After says",
		c.PerSecond())
	e.RetryAfter = wait
	return e
}

// headerRequestInfo is set by the server in a request from another account.
const headerRequestInfo = "Nats-Request-Info"

// clientOf returns the presumed sender of a request. The last part of the inbox is
// that of the request, where a connection has one inbox for all. A request from another
// account has an inbox of the server, the same for all of them: there it is the account.
func clientOf(m *nats.Msg) string {
	if actor, err := header(m.Header, wire.HeaderActor); err == nil && actor != "" {
		return "user " + actor
	}
	if strings.HasPrefix(m.Reply, bus.ImportedReply) {
		var info struct{ Acc string }
		if json.Unmarshal([]byte(m.Header.Get(headerRequestInfo)), &info) == nil && info.Acc != "" {
			return "account " + info.Acc
		}
	}
	inbox := m.Reply
	if i := strings.LastIndexByte(inbox, '.'); i > 0 {
		inbox = inbox[:i]
	}
	return "inbox " + inbox
}
