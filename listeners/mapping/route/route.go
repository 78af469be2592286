// Package route lets the workers of several processes that keep arrays and aggregates share targets. The bus delivers
// the events of the objects that name one target to any of the processes. The process that owns the target runs all
// rounds for it. Otherwise the processes would write the same object at once, and each conflict costs another round.
//
// The processes announce themselves by heartbeats. Rendezvous hashing among the live processes with the same mappings
// chooses the owner of a target. The process that has received an event forwards the round to the owner, and
// acknowledges the event once the owner reports success. If the owner reports a failure, or does not report, the
// process runs the round itself.
//
// Any process may run any round at any time. Agreement on the owner therefore affects only the rate: docs/mapping.md
// has the argument.
//
// A single process only sends heartbeats.
package route

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Subjects covers all subjects of this package: processes that share targets must be permitted to publish and to
// subscribe to them, and nobody else may publish there.
const Subjects = prefix + ">"

const (
	prefix   = "mapping.workers."
	everyone = "all" // the last token of the subject of heartbeats; elsewhere that is the id of a process
)

// Round is a round for one target, because of an event of a source.
type Round struct {
	Mapping int    `json:"mapping"` // its place among those of the definition
	Target  string `json:"target"`
	Owner   string `json:"owner,omitempty"` // of the objects that are counted, where only those of an owner are
	Source  string `json:"source"`
	Fence   bool   `json:"fence,omitempty"` // a request waits for it
	Trace   string `json:"trace,omitempty"` // of the event
}

// Bus is the part of a bus that a Group uses.
type Bus interface {
	Conn() *nats.Conn
	UntilDenied(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc)
}

// Options configure a Group. Durations that are 0 take their defaults.
type Options struct {
	Bus    Bus
	Logger *slog.Logger

	// Definition identifies the mappings. Processes that have different ones run no rounds for each other: they
	// compute different entries.
	Definition string

	// Run runs a round for another process, and calls done once, when the round has ended or will not begin. It must
	// not block.
	Run func(r Round, done func(error))

	// between two heartbeats of a process, and between two reports of pending rounds; default: 2 s
	Heartbeat time.Duration
	Expiry    time.Duration // without a heartbeat until a process counts as gone; default: 6 s
	Silence   time.Duration // without a report from the owner until a round is run here; default: 10 s
	Gap       time.Duration // between two messages: rounds in between share one; default: 5 ms
	Retry     time.Duration // until another attempt where a permission is missing; default: 1 minute
}

// Limits of a Group's memory: beyond them rounds are run where their events were received.
const (
	maxMembers = 1000
	maxPending = 8192  // rounds that others were asked for
	maxServed  = 16384 // rounds that others have asked for
)

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{{&o.Heartbeat, 2 * time.Second}, {&o.Expiry, 6 * time.Second}, {&o.Silence, 10 * time.Second},
		{&o.Gap, 5 * time.Millisecond}, {&o.Retry, time.Minute}} {
		if *d.value <= 0 {
			*d.value = d.otherwise
		}
	}
	return o
}

// Group is the membership of one process among those that share targets. Its methods are safe for concurrent use; on
// nil, Forward forwards nothing.
type Group struct {
	opts Options
	log  *slog.Logger
	conn *nats.Conn
	id   string // unique
	hash uint64 // of id

	cancel  context.CancelFunc
	running sync.WaitGroup
	wake    chan struct{} // there is something in an outbox
	denied  sync.Once
	silent  rate.Sometimes // warnings

	others atomic.Pointer[[]candidate] // live members with the same definition, without this process

	mu        sync.Mutex
	members   map[string]*member // behind others
	announced time.Time          // the last heartbeat of this process

	receivesItself bool // a heartbeat of this process has arrived, since it takes part
	left           bool // Leave was called
	pending        map[uint64]*Forwarded
	last           uint64                         // the last id of a Forwarded
	messages       uint64                         // with rounds that were sent
	outboxes       map[string]*outbox             // by the id of the receiver
	served         map[string]map[uint64]struct{} // rounds of others that run here, by the id of the requesting process
	servedNow      int                            // how many
	idle           chan struct{}                  // closed when no such round is left, after Leave

	counts counts
}

// New returns a group without other members, until Start is called.
func New(o Options) *Group {
	o = o.withDefaults()
	id := object.NewUUID()
	return &Group{
		opts: o, log: o.Logger, conn: o.Bus.Conn(), id: id, hash: hashOf(id), cancel: func() {},
		wake:   make(chan struct{}, 1),
		silent: rate.Sometimes{Interval: time.Minute}, members: map[string]*member{}, pending: map[uint64]*Forwarded{},
		outboxes: map[string]*outbox{}, served: map[string]map[uint64]struct{}{},
	}
}

// Start joins the others in the background.
func (g *Group) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.running.Go(func() { g.run(ctx) })
	g.running.Go(func() { g.send(ctx) })
	g.running.Go(func() { g.watch(ctx) })
}

// Leave has the others run their rounds themselves from now on, and waits until those that run here have ended, or ctx
// ends.
func (g *Group) Leave(ctx context.Context) {
	g.mu.Lock()
	g.left = true
	idle := make(chan struct{})
	if g.servedNow > 0 {
		g.idle = idle
	} else {
		close(idle)
	}
	g.mu.Unlock()
	g.announce()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Close sends the pending reports, and ends the membership. Afterwards no event waits for another process.
func (g *Group) Close() {
	g.mu.Lock()
	g.left = true
	g.mu.Unlock()
	g.flush()
	g.cancel()
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.pending {
		g.settle(f, errEnded)
	}
}

// run takes part until ctx ends. Where a permission is missing it does not, and tries again later.
func (g *Group) run(ctx context.Context) {
	for ctx.Err() == nil {
		// It stays registered while this process waits, so that further denials are not logged one by one.
		allowed, release := g.opts.Bus.UntilDenied(ctx, prefix[:len(prefix)-1])
		err := g.participate(allowed)
		g.forget()
		if ctx.Err() == nil {
			g.denied.Do(func() {
				g.log.Warn("the workers of this process share no targets with others: permit the bus's user to "+
					"publish and to subscribe to "+Subjects+
					"; until then their rounds conflict, and take longer", "error", err)
			})
			_ = backoff.Sleep(ctx, g.opts.Retry)
		}
		release()
	}
}

// participate receives the messages of others and sends heartbeats until ctx ends, and returns the cause.
func (g *Group) participate(ctx context.Context) error {
	own := prefix + g.id
	for subject, receive := range map[string]nats.MsgHandler{prefix + everyone: g.receiveHeartbeat, own: g.receive,
		own + ".*": g.undelivered} {
		sub, err := g.conn.Subscribe(subject, receive)
		if err != nil {
			return errs.Wrap(err, errs.Unavailable, "subscribe to %s", subject)
		}
		defer func() { _ = sub.Unsubscribe() }() // fails when the connection is closed already
	}
	ticker := time.NewTicker(g.opts.Heartbeat)
	defer ticker.Stop()
	for {
		g.announce()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// forget makes this process the only member. Rounds that were not sent fail; the others may run.
func (g *Group) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.members)
	g.receivesItself = false
	g.publishMembers()
	for _, f := range g.pending {
		if f.message == 0 {
			g.settle(f, errEnded)
		}
	}
}

var (
	errEnded       = errors.New("this process no longer shares targets")
	errFailed      = errors.New("the owner of the target did not complete the round")
	errSilent      = errors.New("the owner of the target does not report")
	errUndelivered = errors.New("the owner of the target can't be reached")
)
