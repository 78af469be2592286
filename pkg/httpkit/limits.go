package httpkit

import (
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/internal/prom"
	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
	"belfry/pkg/problem"
)

// Act is the kind of work of a route, for its limits.
type Act uint8

// The acts of routes.
const (
	Unlimited Act = iota // nothing: its requests are not counted
	Read
	List
	Write
	Upload // a write, whose bytes are limited as well
)

// Limits limits the requests of each client. Every request counts for its network address
// and, with a session, for its user. The first limit also protects the reading of
// sessions from strangers. The second holds for all addresses of a user together. It is
// safe for concurrent use.
type Limits struct {
	address, user limitsBy
	loopback      bool
}

// limitsBy are the limits of one sort of client.
type limitsBy struct {
	which    int    // index of Exchange.metered
	who      string // in messages
	requests [Upload + 1]*limit
	bytes    [Upload + 1]*limit // nil for acts whose bytes do not count
}

// limit is one limit; nil means no limit.
type limit struct {
	clients *ratelimit.Clients
	name    string // of the policy in the headers
	key     string // of the configuration
	unit    string // of the count, in messages
	policy  string // item of RateLimit-Policy
	refused prometheus.Counter
}

// NewLimits returns Limits, which are averages over ratelimit.Window, and count refused requests in the registry. Those
// that equal one of before, the limits that they replace, keep its counts. before may be nil.
func NewLimits(o config.RequestLimits, before *Limits, registry *prometheus.Registry) *Limits {
	refused := prom.Register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "belfry_http_limited_total",
		Help: "Requests that a limit refused (429), by the key of the limit in the configuration.",
	}, []string{"limit"}))
	if before == nil {
		before = &Limits{}
	}
	return &Limits{
		address:  newLimitsBy(0, "address", "your network address", o.Address, refused, &before.address),
		user:     newLimitsBy(1, "user", "your user", o.User, refused, &before.user),
		loopback: o.Loopback,
	}
}

func newLimitsBy(which int, name, who string, r config.Rates, refused *prometheus.CounterVec,
	before *limitsBy) limitsBy {
	one := func(suffix, key, unit string, perSecond int, before *limit) *limit {
		if perSecond <= 0 {
			return nil
		}
		var known *ratelimit.Clients
		if before != nil {
			known = before.clients
		}
		l := &limit{
			clients: known.Continue(perSecond), name: name + "-" + suffix, key: "limits." + name + "." + key,
			unit: unit,
		}
		quota := fmt.Sprintf("q=%d", l.clients.Burst())
		if unit == "bytes" {
			quota += `;qu="content-bytes"`
		}
		l.policy = fmt.Sprintf(`"%s";%s;w=%d`, l.name, quota, int(ratelimit.Window/time.Second))
		l.refused = refused.WithLabelValues(l.key)
		return l
	}
	b := limitsBy{which: which, who: who}
	b.requests[Read] = one("reads", "reads", "reads", r.Reads, before.requests[Read])
	b.requests[List] = one("lists", "lists", "lists", r.Lists, before.requests[List])
	b.requests[Write] = one("writes", "writes", "writes", r.Writes, before.requests[Write])
	b.requests[Upload] = b.requests[Write]
	b.bytes[List] = one("list-bytes", "listBytes", "bytes", r.ListBytes, before.bytes[List])
	b.bytes[Upload] = one("upload-bytes", "uploadBytes", "bytes", r.UploadBytes, before.bytes[Upload])
	return b
}

func (b *limitsBy) has(a Act) bool { return b.requests[a] != nil || b.bytes[a] != nil }

// Limit returns a handler that has a request refused when its client exceeds a limit of
// the act.
func (c *Calls) Limit(a Act, h Handler) Handler {
	limits := c.o.Limits
	if limits == nil || !limits.address.has(a) && !limits.user.has(a) {
		return h
	}
	return func(x *Exchange) error {
		if err := limits.admit(c, x, a, x.Header(), x.began); err != nil {
			return err
		}
		return h(x)
	}
}

// Admit counts work of a request beside the act of its route, such as an operation of a batch. The headers
// about limits are set in h.
func (c *Calls) Admit(x *Exchange, a Act, h http.Header) error {
	if c.o.Limits == nil {
		return nil
	}
	// The headers are lists of limits, each of which is shown once: as it is now.
	h.Del("Ratelimit")
	h.Del("Ratelimit-Policy")
	return c.o.Limits.admit(c, x, a, h, time.Now())
}

func (l *Limits) admit(c *Calls, x *Exchange, a Act, h http.Header, now time.Time) error {
	if !l.loopback && isLoopback(x.Address) {
		return nil
	}
	if err := l.address.admit(x, a, ratelimit.Key(x.Address), h, now); err != nil {
		return err
	}
	if !l.user.has(a) {
		return nil
	}
	session, err := c.AccountSession(x)
	if err != nil || session == nil {
		return err
	}
	return l.user.admit(x, a, session.User.UUID, h, now)
}

// Exempt reports whether no limit is for the client of a request: it is on the machine itself.
func (c *Calls) Exempt(x *Exchange) bool {
	return c.o.Limits != nil && !c.o.Limits.loopback && isLoopback(x.Address)
}

func isLoopback(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Unmap().IsLoopback()
}

// admit counts a request of a client.
func (b *limitsBy) admit(x *Exchange, a Act, key string, h http.Header, now time.Time) error {
	if l := b.bytes[a]; l != nil {
		bucket := l.clients.Bucket(key, now)
		x.metered[b.which] = bucket
		// An upload waits instead, when its bytes arrive.
		if wait := bucket.Debt(now); wait > 0 && a == List {
			return b.refuse(h, l, wait)
		}
		l.show(h, bucket.Left(now), 0)
	}
	if l := b.requests[a]; l != nil {
		bucket := l.clients.Bucket(key, now)
		if wait := bucket.Take(now); wait > 0 {
			return b.refuse(h, l, wait)
		}
		l.show(h, bucket.Left(now), 0)
	}
	return nil
}

func (b *limitsBy) refuse(h http.Header, l *limit, wait time.Duration) error {
	l.refused.Inc()
	l.show(h, 0, wait)
	return &errs.Error{Kind: errs.Limited, RetryAfter: wait, Message: fmt.Sprintf(
		"%s exceeds %s: %d %s a second on average are allowed; wait for as many seconds as Retry-After says",
		b.who, l.key, l.clients.PerSecond(), l.unit)}
}

// show adds a limit to the headers of the reply, unless less than half of it is used:
// most replies need none, and a client that is far from its limits nothing to heed.
func (l *limit) show(h http.Header, left int, wait time.Duration) {
	if left > l.clients.Burst()/2 {
		return
	}
	join(h, "Ratelimit-Policy", l.policy)
	// Within a second only the rest can be used, or none until the wait is over.
	join(h, "Ratelimit", fmt.Sprintf(`"%s";r=%d;t=%s`, l.name, left, problem.Seconds(wait)))
}

// join appends an item to a header that is a list.
func join(h http.Header, name, item string) {
	if before := h[name]; len(before) > 0 {
		item = before[0] + ", " + item
	}
	h[name] = []string{item}
}

// Charge counts bytes of a list that the client is sent. Those that exceed a limit have
// its next lists refused.
func (x *Exchange) Charge(n int) {
	for _, b := range x.metered {
		if b != nil {
			b.Charge(time.Now(), n)
		}
	}
}

// Pace counts bytes of an upload, and waits as long as they exceed a limit: reading slower
// makes the client send slower. The error is that of the request's context.
func (x *Exchange) Pace(n int) error {
	var wait time.Duration
	for _, b := range x.metered {
		if b != nil {
			wait = max(wait, b.Charge(time.Now(), n))
		}
	}
	if wait == 0 {
		return nil
	}
	return backoff.Sleep(x.Request.Context(), wait)
}
