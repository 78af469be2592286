package natsapi

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/op"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/wire"
)

// service serves one store on the bus. It implements the micro protocol with the
// types of the library, because the library's own service handles the requests of
// an endpoint one at a time, and its statistics cover nothing else.
type service struct {
	server    *Server
	store     *store.Store
	identity  micro.ServiceIdentity
	started   time.Time
	admission *admission
	sizes     pagememory.Sizes // of the objects of lists
	endpoints []*endpoint
	controls  []*nats.Subscription // of the micro protocol
	requests  []*nats.Subscription
	closed    []<-chan struct{} // each is closed when its subscription has ended
}

// endpoint is one operation.
type endpoint struct {
	of    *op.Request
	mu    sync.Mutex
	stats micro.EndpointStats
}

func newService(s *Server, st *store.Store) *service {
	v := &service{
		server: s, store: st, started: s.opts.Now().UTC(),
		admission: newAdmission(s.opts.MaxInFlight, s.opts.MaxQueued, maxQueuedBytes),
		identity: micro.ServiceIdentity{
			Name: "store-" + st.Name(), ID: nuid.Next(), Version: s.opts.Version,
			Metadata: map[string]string{"store": st.Name()},
		},
	}
	for _, r := range s.opts.Set.Requests(st.Name()) {
		v.endpoints = append(v.endpoints, &endpoint{of: &r, stats: micro.EndpointStats{
			Name: r.Op, Subject: wire.Subject(st.Name(), r.Op), QueueGroup: micro.DefaultQueueGroup,
		}})
	}
	return v
}

// subscribe subscribes to the subjects of the micro protocol, then to those of the
// operations.
func (v *service) subscribe() error {
	for verb, describe := range map[micro.Verb]func() any{
		micro.PingVerb:  func() any { return micro.Ping{ServiceIdentity: v.identity, Type: micro.PingResponseType} },
		micro.InfoVerb:  func() any { return v.info() },
		micro.StatsVerb: func() any { return v.statistics() },
	} {
		answer := func(m *nats.Msg) {
			if !bus.IsInbox(m.Reply) {
				return
			}
			if data, err := json.Marshal(describe()); err == nil {
				_ = m.Respond(data)
			}
		}
		for _, which := range [][2]string{{}, {v.identity.Name}, {v.identity.Name, v.identity.ID}} {
			subject, err := micro.ControlSubject(verb, which[0], which[1])
			if err != nil {
				return err
			}
			sub, err := v.server.opts.Conn.Subscribe(subject, answer)
			if err != nil {
				return err
			}
			v.controls = append(v.controls, v.track(sub))
		}
	}
	for _, e := range v.endpoints {
		receive := func(m *nats.Msg) { v.receive(e, m) }
		sub, err := v.server.opts.Conn.QueueSubscribe(e.stats.Subject, e.stats.QueueGroup, receive)
		if err != nil {
			return err
		}
		v.requests = append(v.requests, v.track(sub))
	}
	return nil
}

// track notices when a subscription has ended.
func (v *service) track(sub *nats.Subscription) *nats.Subscription {
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	v.closed = append(v.closed, closed)
	return sub
}

// unsubscribe ends subscriptions. The channels in closed are closed when the requests that have arrived are in flight.
func (v *service) unsubscribe(subs *[]*nats.Subscription) {
	for _, sub := range *subs {
		stop := sub.Drain
		if !v.server.opts.Conn.IsConnected() {
			stop = sub.Unsubscribe // nothing can arrive
		}
		_ = stop() // fails when the connection, and so the subscription, is closed already
	}
	*subs = nil
}

// receive starts handling a request, has another server handle it, or rejects it at once.
func (v *service) receive(e *endpoint, m *nats.Msg) {
	received := v.server.opts.Now()
	if m.Reply != "" && !bus.IsInbox(m.Reply) {
		to := m.Reply
		m.Reply = ""
		err := errs.New(errs.Invalid, "the reply subject %.100q is not an inbox: the request was not executed", to)
		v.reply(e, m, received, requestID(m), err, reply{})
		return
	}
	v.server.mu.RLock()
	handler := v.server.handler
	if handler == v.server {
		defer v.server.mu.RUnlock()
		v.accept(e, m, received)
		return
	}
	v.server.mu.RUnlock()
	if other := handler.service(v.store.Name()); other != nil {
		for _, same := range other.endpoints {
			if same.of.Op == e.of.Op {
				other.receive(same, m)
				return
			}
		}
	}
	err := errs.New(errs.NotFound, "store %s does not serve %s over the bus", v.store.Name(), e.of.Op)
	v.reply(e, m, received, requestID(m), err, reply{})
}

// accept starts handling a request, or rejects it where there are too many.
func (v *service) accept(e *endpoint, m *nats.Msg, received time.Time) {
	size := len(m.Data)
	if err := v.server.limits.admit(m, received); err != nil {
		v.reply(e, m, received, requestID(m), err, reply{})
		return
	}
	if !v.admission.admit(size) {
		err := errs.New(errs.Unavailable, "store %s has too many requests over the bus: try again later",
			v.store.Name())
		v.reply(e, m, received, requestID(m), err, reply{})
		return
	}
	v.server.inFlight.Add(1)
	go func() {
		defer v.server.inFlight.Done()
		defer v.admission.release(size)
		v.serve(e, m, received)
	}()
}

// count adds a request that has its reply.
func (e *endpoint) count(o reply, took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.NumRequests++
	e.stats.ProcessingTime += took
	e.stats.AverageProcessingTime = e.stats.ProcessingTime / time.Duration(e.stats.NumRequests)
	if o.status != 0 {
		e.stats.NumErrors++
		e.stats.LastError = strconv.Itoa(o.status) + ":" + o.text
	}
}

func (v *service) info() micro.Info {
	info := micro.Info{
		ServiceIdentity: v.identity, Type: micro.InfoResponseType, Description: "operations on store " + v.store.Name(),
	}
	for _, e := range v.endpoints {
		info.Endpoints = append(info.Endpoints, micro.EndpointInfo{
			Name: e.of.Op, Subject: e.stats.Subject, QueueGroup: e.stats.QueueGroup, Metadata: map[string]string{},
		})
	}
	return info
}

func (v *service) statistics() micro.Stats {
	stats := micro.Stats{ServiceIdentity: v.identity, Type: micro.StatsResponseType, Started: v.started}
	for _, e := range v.endpoints {
		e.mu.Lock()
		copied := e.stats
		e.mu.Unlock()
		stats.Endpoints = append(stats.Endpoints, &copied)
	}
	return stats
}
