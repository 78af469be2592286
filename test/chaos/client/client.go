package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/test/chaos/history"
	"belfry/test/chaos/world"
)

// Options configures the clients of a run.
type Options struct {
	Deployment world.Deployment
	Tag        string // of the names of all objects and requests of the run
	Clients    int
	History    *history.History
	Accounts   *Accounts // nil: nobody registers
}

// Pool is the clients of a run, which share what they believe of the objects.
type Pool struct {
	Options
	http    *transport
	bus     *nats.Conn
	view    *view
	writing writing
}

// NewPool connects the clients.
func NewPool(o Options) (*Pool, error) {
	bus, err := connectBus(o.Deployment.Bus, nats.ReconnectBufSize(-1)) // what was not sent is not sent later
	if err != nil {
		return nil, err
	}
	return &Pool{Options: o, http: newTransport(), bus: bus, view: &view{objects: map[history.Object]belief{}}}, nil
}

// Close disconnects the clients.
func (p *Pool) Close() {
	p.bus.Close()
	p.http.client.CloseIdleConnections()
}

// Start lets all clients write until stop is called, which returns when their last requests have ended.
// What they do follows from the seed, as far as the replies are the same.
func (p *Pool) Start(ctx context.Context, seed uint64) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	for n := range p.Clients {
		c := &client{
			Pool: p, number: n, prefix: fmt.Sprintf("%s-%d-%d", p.Tag, seed, n),
			rand:  rand.New(rand.NewPCG(seed, uint64(n))),
			front: p.Deployment.Fronts[n%len(p.Deployment.Fronts)],
		}
		all.Go(func() { c.run(ctx, done) })
	}
	all.Go(func() { p.watch(ctx, seed, done) })
	if p.Accounts != nil {
		all.Go(func() { p.Accounts.run(ctx, p, seed, done) })
	}
	return sync.OnceFunc(func() {
		close(done)
		all.Wait()
	})
}

// client sends one request after the other.
type client struct {
	*Pool
	number int
	prefix string // of its requests
	rand   *rand.Rand
	front  string
	sent   int
}

func (c *client) run(ctx context.Context, done <-chan struct{}) {
	for {
		pause := time.Duration(c.rand.IntN(4)) * time.Millisecond
		if !c.step(ctx) {
			pause = 10 * time.Millisecond // the front is unavailable
		}
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// token returns a value that no other write sets. It is the id of the next request.
func (c *client) token() string { return c.prefix + "-" + strconv.Itoa(c.sent+1) }

// do sends an op and records it. It reports false when there was no reply.
func (c *client) do(ctx context.Context, op history.Op) (history.Op, bool) {
	c.sent++
	op.Client, op.Request = c.number, c.prefix+"-"+strconv.Itoa(c.sent)
	patient := c.rand.IntN(30) > 0
	if !patient { // a client that gives up early; the server may go on
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+c.rand.IntN(12))*time.Millisecond)
		defer cancel()
	}
	if op.Kind.Writes() {
		defer c.writing.begin(op.Object)()
	}
	op.Call = c.History.Now()
	var wrong string
	if op.Bus {
		wrong = overBus(ctx, c.bus, &op)
	} else {
		r, err := request(ctx, c.http.send, c.front, &op)
		if wrong = conclude(&op, r, err); op.Outcome == history.Done {
			op.Revision = revisionOf(r.header)
			if len(r.body) > 0 {
				op.Body = r.body
			}
		}
	}
	op.Return = c.History.Now()
	// After a first attempt that took too long, a conflict over the bus may be with that attempt: it is a reply.
	if op.Outcome == history.Unknown && patient && op.Status != http.StatusConflict {
		c.History.Fail(op)
	}
	c.record(op, wrong)
	return op, op.Outcome != history.Unknown
}

func (c *client) record(op history.Op, wrong string) {
	if op.Outcome == history.Unknown {
		op.Return = history.Never
	}
	c.History.Add(op)
	c.view.learn(op)
	if wrong != "" {
		c.History.Wrong(fmt.Sprintf("%s: %s", op, wrong))
	}
}

// step sends one random request, or a read and a write that depends on it.
func (c *client) step(ctx context.Context) bool {
	o := c.someObject()
	store := history.StoreOf(o.Store)
	b := c.view.get(o)
	if !b.exists {
		return c.missing(ctx, store, o)
	}
	op := history.Op{Object: o}
	kind := c.rand.IntN(100)
	switch {
	case kind < 24:
		op.Kind = history.Get
	case kind < 28:
		op.Kind, op.IfNoneMatch = history.Get, b.revision
	case kind < 42 && c.rand.IntN(4) == 0 && history.Copied(o.Store):
		return c.burst(ctx, store, o)
	case kind < 42: // one field
		op.Kind, op.Fields = history.Put, c.fields(store, false)
		op.Bus = c.rand.IntN(8) == 0
	case kind < 58: // all fields: this moves objects
		op.Kind, op.Fields = history.Put, c.fields(store, true)
		op.Bus = c.rand.IntN(8) == 0
	case kind < 68:
		op.Kind, op.Fields = history.Patch, c.patch(store)
	case kind < 86:
		return c.conditional(ctx, store, o, b)
	case kind < 92:
		op.Kind, op.Bus = history.Delete, c.rand.IntN(8) == 0
	case kind < 94:
		op.Kind, op.Fields = history.Create, c.fields(store, true)
	case store.Name == history.Children:
		return c.file(ctx, o)
	default:
		op.Kind = history.Get
	}
	_, ok := c.do(ctx, op)
	return ok
}

// burst changes what is copied into other objects again and again.
func (c *client) burst(ctx context.Context, store history.Store, o history.Object) (ok bool) {
	for range 2 + c.rand.IntN(5) {
		if _, ok = c.do(ctx, history.Op{Object: o, Kind: history.Put, Fields: c.fields(store, false)}); !ok {
			break
		}
	}
	return ok
}

// missing does something with an object that is believed not to exist.
func (c *client) missing(ctx context.Context, store history.Store, o history.Object) bool {
	if c.rand.IntN(3) == 0 && !c.orphan(ctx, o) {
		return false
	}
	op := history.Op{Object: o, Kind: history.Create, Fields: c.fields(store, true)}
	switch c.rand.IntN(10) {
	case 0:
		op.Kind, op.Fields = history.Get, nil
	case 1:
		op.Kind = history.Put
	case 2, 3:
		op.IfAbsent = true
	case 4:
		op.Bus = true
	}
	_, ok := c.do(ctx, op)
	return ok
}

// orphan has another object name one that does not exist, from which it would have copies.
func (c *client) orphan(ctx context.Context, named history.Object) bool {
	for _, store := range history.All() {
		for _, one := range store.Copies {
			if one.Source != named.Store || store.Required {
				continue
			}
			o := history.Named(c.Tag, store.Name, c.rand.IntN(store.Objects))
			op := history.Op{Object: o, Kind: history.Put, Fields: c.fields(store, true)}
			if !c.view.get(o).exists {
				op.Kind = history.Create
			}
			op.Fields[one.Reference] = strconv.Quote(named.UUID)
			_, ok := c.do(ctx, op)
			return ok
		}
	}
	return true
}

// conditional reads an object and writes it if it is still at that revision, or at one that was read
// before.
func (c *client) conditional(ctx context.Context, store history.Store, o history.Object, b belief) bool {
	at := b.revision
	if at == 0 || c.rand.IntN(3) > 0 {
		read, ok := c.do(ctx, history.Op{Object: o, Kind: history.Get})
		if !ok || read.Status != 200 {
			return ok
		}
		at = read.Revision
	}
	op := history.Op{Object: o, Kind: history.Put, Fields: c.fields(store, c.rand.IntN(2) == 0), IfMatch: at}
	switch c.rand.IntN(8) {
	case 0:
		op.Kind, op.Fields = history.Delete, nil
	case 1:
		op.Kind, op.Fields = history.Patch, c.patch(store)
	case 2:
		op.Bus = true
	}
	_, ok := c.do(ctx, op)
	return ok
}

// someObject picks an object. Sources whose array has a limit are picked most often.
func (c *client) someObject() history.Object {
	names := [...]string{
		history.Registers, history.Registers, history.Parents, history.Parents, history.Children, history.Children,
		history.Toys, history.Toys, history.Smalls, history.Smalls, history.Smalls, history.Tags, history.Tags,
		history.Ratings, history.Ratings, history.Ratings, history.Shelves, history.Shelves, history.Boxes,
		history.Boxes, history.Lids,
	}
	store := history.StoreOf(names[c.rand.IntN(len(names))])
	if store.Name == "" { // the last release does not have it
		store = history.StoreOf(history.Registers)
	}
	return history.Named(c.Tag, store.Name, c.rand.IntN(store.Objects))
}

// fields returns the title, and with all the value and the key too.
func (c *client) fields(store history.Store, all bool) history.Fields {
	f := history.Fields{"title": strconv.Quote(c.token())}
	if !all {
		return f
	}
	f["value"] = c.decimal()
	if store.Key == "" {
		return f
	}
	if store.Cleared != "" && c.rand.IntN(2) == 0 {
		n := c.rand.IntN(history.StoreOf(store.Clears).Objects)
		f[store.Cleared] = strconv.Quote(history.Named(c.Tag, store.Clears, n).UUID)
	}
	var targets []string
	for range 1 + c.rand.IntN(3) {
		n := c.rand.IntN(history.StoreOf(store.Target).Objects)
		targets = append(targets, strconv.Quote(history.Named(c.Tag, store.Target, n).UUID))
	}
	if store.Key == "parents" {
		f[store.Key] = "[" + strings.Join(targets, ",") + "]"
	} else {
		f[store.Key] = targets[0]
	}
	return f
}

// decimal returns a whole number, or one that binary fractions can't represent.
func (c *client) decimal() string {
	if c.rand.IntN(2) == 0 {
		return strconv.Itoa(c.rand.IntN(100))
	}
	return fmt.Sprintf("%d.%d1", c.rand.IntN(200)-100, c.rand.IntN(100))
}

// patch returns fields of which some are removed.
func (c *client) patch(store history.Store) history.Fields {
	f := c.fields(store, c.rand.IntN(3) == 0)
	switch c.rand.IntN(5) {
	case 0:
		f["note"] = "null"
	case 3:
		if store.Cleared != "" {
			f[store.Cleared] = "null"
		}
	case 1:
		f["note"] = strconv.Itoa(c.rand.IntN(100))
	case 2:
		f["value"] = "null"
	}
	return f
}

// belief is what the last reply about an object said.
type belief struct {
	exists   bool
	revision uint64
}

// view is what clients believe. It only decides what they request.
type view struct {
	mu      sync.Mutex
	objects map[history.Object]belief
}

func (v *view) get(o history.Object) belief {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.objects[o]
}

func (v *view) learn(op history.Op) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := v.objects[op.Object]
	switch {
	case op.Status == 404, op.Outcome == history.Done && op.Kind == history.Delete:
		b = belief{}
	case op.Status == 409 && op.Kind == history.Create:
		b.exists = true
	case op.Outcome == history.Done:
		b.exists = true
		if op.Revision > 0 && op.File == "" {
			b.revision = op.Revision
		}
	}
	v.objects[op.Object] = b
}
