package natsapi

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	"belfry/pkg/errs"
	"belfry/pkg/natsapi/wire"
	"belfry/pkg/store"
)

// service is a store on the bus. It speaks the micro protocol by itself, in the
// types of the library: the library's own service handles one request of an
// endpoint after the other, and counts nothing of what is done beside that.
type service struct {
	server    *Server
	store     *store.Store
	identity  micro.ServiceIdentity
	started   time.Time
	admission *admission
	endpoints []*endpoint
	subs      []*nats.Subscription
	closed    []<-chan struct{} // closed when a subscription is done with
}

// endpoint is one operation.
type endpoint struct {
	op    string
	mu    sync.Mutex
	stats micro.EndpointStats
}

func newService(s *Server, st *store.Store) *service {
	v := &service{
		server: s, store: st, started: s.opts.Now().UTC(), admission: newAdmission(s.opts.MaxInFlight, s.opts.MaxQueued, maxQueuedBytes),
		identity: micro.ServiceIdentity{
			Name: "store-" + st.Name(), ID: nuid.Next(), Version: s.opts.Version, Metadata: map[string]string{"store": st.Name()},
		},
	}
	for _, op := range wire.Ops() {
		v.endpoints = append(v.endpoints, &endpoint{op: op, stats: micro.EndpointStats{
			Name: op, Subject: wire.Subject(st.Name(), op), QueueGroup: micro.DefaultQueueGroup,
		}})
	}
	return v
}

// subscribe begins: who is asked about the service answers first.
func (v *service) subscribe() error {
	for verb, about := range map[micro.Verb]func() any{
		micro.PingVerb:  func() any { return micro.Ping{ServiceIdentity: v.identity, Type: micro.PingResponseType} },
		micro.InfoVerb:  func() any { return v.info() },
		micro.StatsVerb: func() any { return v.statistics() },
	} {
		answer := func(m *nats.Msg) {
			if !isInbox(m.Reply) {
				return
			}
			if data, err := json.Marshal(about()); err == nil {
				_ = m.Respond(data)
			}
		}
		for _, which := range [][2]string{{}, {v.identity.Name}, {v.identity.Name, v.identity.ID}} {
			subject, err := micro.ControlSubject(verb, which[0], which[1])
			if err != nil {
				return err
			}
			if err := v.track(v.server.opts.Conn.Subscribe(subject, answer)); err != nil {
				return err
			}
		}
	}
	for _, e := range v.endpoints {
		receive := func(m *nats.Msg) { v.receive(e, m) }
		if err := v.track(v.server.opts.Conn.QueueSubscribe(e.stats.Subject, e.stats.QueueGroup, receive)); err != nil {
			return err
		}
	}
	return nil
}

func (v *service) track(sub *nats.Subscription, err error) error {
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(closed) })
	v.subs, v.closed = append(v.subs, sub), append(v.closed, closed)
	return nil
}

// unsubscribe takes no more requests. What it returns is closed once those that
// have arrived are in hand.
func (v *service) unsubscribe() []<-chan struct{} {
	for _, sub := range v.subs {
		end := sub.Drain
		if !v.server.opts.Conn.IsConnected() {
			end = sub.Unsubscribe // there is nothing that could still arrive
		}
		_ = end() // fails where the connection is closed, and the subscription with it
	}
	closing := v.closed
	v.subs, v.closed = nil, nil
	return closing
}

// isInbox reports whether a subject is one that answers go to. Requests name the
// subject of their answer, and we may publish where those who ask may not: into
// the log of events, for instance.
func isInbox(subject string) bool {
	// A request from another cluster: _GR_.<cluster>.<server>.<subject>.
	if parts := strings.SplitN(subject, ".", 4); len(parts) == 4 && parts[0] == "_GR_" {
		subject = parts[3]
	}
	return strings.HasPrefix(subject, "_INBOX") || strings.HasPrefix(subject, "_R_.") // the latter from another account
}

// receive takes a request in hand, or refuses it at once.
func (v *service) receive(e *endpoint, m *nats.Msg) {
	began := v.server.opts.Now()
	if m.Reply != "" && !isInbox(m.Reply) {
		to := m.Reply
		m.Reply = ""
		err := errs.New(errs.Invalid, "a request wants its answer on %.100q, which is no inbox: it is not done", to)
		v.reply(e, m, began, requestID(m), err, reply{})
		return
	}
	size := len(m.Data)
	if !v.admission.admit(size) {
		err := errs.New(errs.Unavailable, "store %s has too many requests over the bus to answer: ask again later", v.store.Name())
		v.reply(e, m, began, requestID(m), err, reply{})
		return
	}
	v.server.inFlight.Add(1)
	go func() {
		defer v.server.inFlight.Done()
		defer v.admission.release(size)
		v.serve(e, m, began)
	}()
}

// count notes a request that has been answered.
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
			Name: e.op, Subject: e.stats.Subject, QueueGroup: e.stats.QueueGroup, Metadata: map[string]string{},
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
