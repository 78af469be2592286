// Package sse tells browsers what happens, as Server-Sent Events: the log of
// events, from wherever somebody left off, as far as they may see it.
//
// # One tail, many clients
//
// While anybody listens, one tail per process reads the log with direct gets,
// which need no consumer. The plain live subjects wake it up; a look every
// few seconds is the safety net. What it has read lies in a bounded window that
// all clients share: each event is made into a frame once, and a client is
// hardly more than its place in the window. With many clients the tail rests
// between its reads, so that one waking up sends several events.
//
// A client whose place is before the window reads pages of the log by itself
// until it is in it. From then on it has to keep up: who falls out of the
// window is told so and let go, and resumes from the log.
//
// # Who may see what
//
// An object is judged by the store's rule of get when it is sent, on what it
// was in the event and on what it is in the store; see judgement. Verdicts are
// shared by all clients of one user. The tail also sees the ends of sessions
// and the changes of users, and the client concerned looks anew who it is
// before it is sent anything that came later.
package sse

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/ratelimit"
	"belfry/pkg/store"
)

// Defaults of Options.
const (
	DefaultClients   = 10_000
	DefaultAddress   = 200
	DefaultHeartbeat = 15 * time.Second
	DefaultBuffer    = 16 << 20
)

// Options are what a Hub is made of. Bus is required.
type Options struct {
	Bus      *bus.Bus
	Stores   []*store.Store // those whose events can be heard
	Identity []string       // names of the stores that say who somebody is

	Clients   int           // at once; 0: DefaultClients
	Address   int           // of them, from one network address; 0: DefaultAddress, negative: no limit
	Heartbeat time.Duration // between signs of life; 0: DefaultHeartbeat
	Buffer    int64         // bytes of the window; 0: DefaultBuffer

	Registry *prometheus.Registry // nil: one of its own
	Logger   *slog.Logger         // nil: slog.Default
}

// Hub is where clients listen. It is safe for concurrent use.
type Hub struct {
	Options
	sources map[string]*source
	names   []string // of the sources, sorted
	tail    *tail
	reading chan struct{} // a place for each who reads the log at once
	metrics *metrics

	life   context.Context
	end    context.CancelFunc
	active sync.WaitGroup

	mu        sync.Mutex
	clients   int
	addresses map[string]int
}

// readers is how many clients read pages of the log at once; others wait.
const readers = 16

// Heard are the events that can be heard.
func Heard() []event.Name {
	return []event.Name{event.StoreSaved, event.StoreUpdated, event.StoreDeleted, event.BinaryUploaded, event.BinaryDeleted}
}

// New makes a hub. It costs nothing until somebody listens.
func New(o Options) *Hub {
	h := &Hub{Options: o, sources: map[string]*source{}, reading: make(chan struct{}, readers), addresses: map[string]int{}}
	if h.Clients == 0 {
		h.Clients = DefaultClients
	}
	if h.Address == 0 {
		h.Address = DefaultAddress
	}
	if h.Heartbeat == 0 {
		h.Heartbeat = DefaultHeartbeat
	}
	if h.Buffer == 0 {
		h.Buffer = DefaultBuffer
	}
	if h.Registry == nil {
		h.Registry = prometheus.NewRegistry()
	}
	if h.Logger == nil {
		h.Logger = slog.Default()
	}
	for _, s := range o.Stores {
		h.sources[s.Name()] = newSource(s, h.lastState)
		h.names = append(h.names, s.Name())
	}
	h.life, h.end = context.WithCancel(context.Background())
	h.tail = newTail(h)
	h.metrics = newMetrics(h)
	return h
}

// Close ends the tail. Clients are to have gone before.
func (h *Hub) Close() {
	h.end()
	h.active.Wait()
}

// admit counts a client in, and reports errs.Unavailable or errs.Limited when
// there are too many.
func (h *Hub) admit(address string) (leave func(), err error) {
	key := ratelimit.Key(address)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients >= h.Clients {
		return nil, &errs.Error{Kind: errs.Unavailable, Message: "too many clients listen already; try again later, or elsewhere", RetryAfter: fullRetry}
	}
	if h.Address > 0 && h.addresses[key] >= h.Address {
		return nil, &errs.Error{Kind: errs.Limited, RetryAfter: fullRetry,
			Message: "too many clients of your network address listen already; close some, or have several pages share one stream"}
	}
	h.clients++
	h.addresses[key]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.clients--
		if h.addresses[key]--; h.addresses[key] == 0 {
			delete(h.addresses, key)
		}
	}, nil
}

const fullRetry = 10 * time.Second

// listening is how many clients there are.
func (h *Hub) listening() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients
}
