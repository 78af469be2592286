// Package sse streams events to browsers, as Server-Sent Events: the log of events, from
// the last position of a client, as far as its user may read the objects.
//
// # One reader, many clients
//
// While there are clients, one reader per process reads the log with direct gets, which need no consumer. Messages on
// the live subjects wake it up; a poll every few seconds finds the events that they missed. The reader keeps the events
// in a window of bounded size that all clients share.
//
// Each event is encoded once, and a client is little more than its position in the window. With many clients the reader
// delays its next read, so that each client is woken for several events at once.
//
// A client whose position is before the window receives pages of the log until it reaches the window. Those clients
// share one scan of the log; see scan. From then on it has to keep up: a client that falls out of the window is
// disconnected with a reason, and resumes from the log.
//
// # Authorization
//
// The store's rule for get decides whether a client may receive an event, and so does the rule for list, unless the
// store is one of GetOnly. The hub evaluates them when it sends the event, for the object in the event and for the
// present object; see authorization.
//
// Clients of one user share decisions. The reader also sees the ends of sessions and the changes of users: the affected
// clients authenticate again before they receive later events.
package sse

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/ratelimit"
	"belfry/internal/seal"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Options are the options of a Hub. Bus and EventStreams are required.
type Options struct {
	config.EventStreams
	Bus    *bus.Bus
	Stores []*store.Store // whose events are streamed
	// names of those whose events need only the permission to get the object; others also need that to list it
	GetOnly  []string
	Identity []string // names of the stores of users and sessions
	// name of the store of users, whose events event.Auth are streamed to permitted users; "": to nobody
	Accounts string

	// Rules are texts that identify the rules of stores, by their names. A stream of some objects resumes without a
	// reset only under the same rules.
	Rules map[string]string

	Sealer   *seal.Sealer         // of ids; processes with the same sealer open each other's ids. nil: one of its own
	Registry *prometheus.Registry // nil: one of its own
	Logger   *slog.Logger         // nil: nothing is logged
}

// Hub streams events to clients. It is safe for concurrent use.
type Hub struct {
	opts    Options
	sources map[string]*source
	names   []string // of the sources, sorted
	reader  *reader
	scan    *scan
	metrics *metrics
	costs   costs
	filters objectFilters

	ctx    context.Context // of the reader
	cancel context.CancelFunc
	active sync.WaitGroup

	retired chan struct{} // closed by Retire
	retire  sync.Once

	mu        sync.Mutex
	clients   int
	addresses map[string]int
}

// EventNames returns the events of stores that are streamed. Events about the security of accounts are streamed as well
// if a subscription names them.
func EventNames() []event.Name {
	return []event.Name{event.StoreSaved, event.StoreUpdated, event.StoreDeleted, event.BinaryUploaded,
		event.BinaryDeleted}
}

// New returns a Hub. It reads nothing until there is a client.
func New(o Options) *Hub {
	h := &Hub{opts: o, retired: make(chan struct{}), sources: map[string]*source{}, addresses: map[string]int{},
		costs: newCosts(userCost, addressCost)}
	if h.opts.Sealer == nil {
		h.opts.Sealer, _ = seal.New(seal.NewKey()) // never fails
	}
	if h.opts.Registry == nil {
		h.opts.Registry = prometheus.NewRegistry()
	}
	if h.opts.Logger == nil {
		h.opts.Logger = slog.New(slog.DiscardHandler)
	}
	for _, s := range o.Stores {
		h.sources[s.Name()] = newSource(s, slices.Contains(o.GetOnly, s.Name()), h.lastState, h.endOf)
		h.sources[s.Name()].rules = o.Rules[s.Name()]
		h.names = append(h.names, s.Name())
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.reader, h.scan = newReader(h), &scan{hub: h}
	h.metrics = newMetrics(h)
	return h
}

// Retire ends all streams, and those that begin later, because another hub with other rules has replaced this one. The
// metrics show the state of the new hub. Clients connect again and resume there.
func (h *Hub) Retire(next *Hub) {
	next.showState()
	h.retire.Do(func() { close(h.retired) })
}

// isRetired reports whether Retire was called.
func (h *Hub) isRetired() bool {
	select {
	case <-h.retired:
		return true
	default:
		return false
	}
}

// Close stops the reader. All calls of Serve must have returned.
func (h *Hub) Close() {
	h.cancel()
	h.active.Wait()
}

// admit adds a client, and reports errs.Unavailable or errs.Limited when there are
// too many.
func (h *Hub) admit(address string) (release func(), err error) {
	key := ratelimit.Key(address)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients >= h.opts.Clients {
		return nil, &errs.Error{Kind: errs.Unavailable, Message: "too many clients are connected; try again later",
			RetryAfter: admitRetry}
	}
	if h.opts.Address > 0 && h.addresses[key] >= h.opts.Address {
		return nil, &errs.Error{Kind: errs.Limited, RetryAfter: admitRetry,
			Message: "too many clients of your network address are connected; close some, or let several pages share " +
				"one stream"}
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

const admitRetry = 10 * time.Second

// clientCount returns the number of clients.
func (h *Hub) clientCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients
}
