package search

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// SubjectPrefix begins the subject of searches in a store, which any process with the role search answers.
const SubjectPrefix = "search."

const (
	queue       = "belfry"
	searchLimit = 5 * time.Second // of one search
	slotTimeout = time.Second     // until it begins
)

// maxSearches is how many searches are executed at once.
var maxSearches = 2 * runtime.GOMAXPROCS(0)

// reply is the reply to a search.
type reply struct {
	Hits  []store.TextHit `json:"hits,omitempty"`
	More  bool            `json:"more,omitempty"`
	Error string          `json:"error,omitempty"`
	// it is about what was asked for; else the search may be repeated
	Invalid bool `json:"invalid,omitempty"`
}

func (s *Service) subscribe(x *storeIndex) (err error) {
	subject := SubjectPrefix + x.of.Load().Store.Name()
	x.sub, err = s.opts.Conn.QueueSubscribe(subject, queue, func(m *nats.Msg) {
		if !bus.IsInbox(m.Reply) {
			return
		}
		s.do(func() {
			if data, err := json.Marshal(s.admit(x, m.Data)); err == nil {
				_ = m.Respond(data) // the caller gives up
			}
		})
	})
	return errs.Wrap(err, errs.Unavailable, "subscribing to %s", subject)
}

// do runs a function that Close waits for, unless that has begun.
func (s *Service) do(f func()) {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.ctx.Err() == nil {
		s.running.Go(f)
	}
}

// admit answers a search once others have ended, if that is soon: callers that wait longer give up.
func (s *Service) admit(x *storeIndex, data []byte) reply {
	timer := time.NewTimer(slotTimeout)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return s.answer(x, data)
	case <-timer.C:
		return reply{Error: "q: too many searches at once; try again"}
	case <-s.ctx.Done():
		return reply{Error: "q: the process that searches stops; try again"}
	}
}

func (s *Service) answer(x *storeIndex, data []byte) reply {
	ctx, cancel := context.WithTimeout(context.Background(), searchLimit)
	defer cancel()
	var asked store.TextSearch
	err := json.Unmarshal(data, &asked)
	if err != nil || asked.Limit < 1 || asked.Limit > store.MaxPage+1 {
		err = errs.New(errs.Invalid, "the request is no search")
	}
	var r reply
	if err == nil {
		err = caught(func() (err error) {
			r.Hits, r.More, err = x.search(ctx, asked)
			return err
		})
	}
	if err == nil {
		return r
	}
	var own *errs.Error
	if !errors.As(err, &own) {
		s.opts.Logger.Error("a search failed", "store", x.of.Load().Store.Name(), "error", err)
		return reply{Error: "q: the search failed; the log has the reason"}
	}
	return reply{Error: own.Message, Invalid: errors.Is(err, errs.Invalid)}
}

func (x *storeIndex) search(ctx context.Context, s store.TextSearch) ([]store.TextHit, bool, error) {
	x.using.RLock()
	defer x.using.RUnlock()
	current := x.current.Load()
	of := x.of.Load().Store.Name()
	switch {
	// How many objects there are is not for all who may search.
	case (current == nil || current.settings.Rule != s.Rule) && s.Rule != "":
		return nil, false, errs.New(errs.Unavailable, "q: the text of %s is being indexed; try again", of)
	case current == nil || current.settings.Rule != s.Rule:
		return nil, false, errs.New(errs.Unavailable,
			"q: the text of %s is being indexed; %d objects have been read so far", of, x.progress().Done)
	}
	parts, err := current.parts(s.Words)
	switch {
	case err != nil:
		return nil, false, err
	case s.Rule != "":
		return current.searchOwn(ctx, parts, s)
	}
	q, err := current.queryOf(parts, s.Fields)
	if err != nil {
		return nil, false, err
	}
	return current.search(ctx, q, s)
}

// Client asks processes with the role search.
type Client struct {
	conn    *nats.Conn
	callers callers
}

// NewClient returns a Client.
func NewClient(conn *nats.Conn) *Client { return &Client{conn: conn} }

var _ store.Searcher = (*Client)(nil)

// Search implements store.Searcher.
func (c *Client) Search(ctx context.Context, name string, s store.TextSearch) ([]store.TextHit, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, searchLimit+2*slotTimeout)
	defer cancel()
	end, err := c.callers.begin(ctx, callerOf(store.CallOf(ctx)))
	if err != nil {
		return nil, false, err
	}
	defer end()
	data, err := json.Marshal(s)
	if err != nil {
		return nil, false, err
	}
	m, err := c.conn.RequestWithContext(ctx, SubjectPrefix+name, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, false, errs.New(errs.Unavailable, "q: no process answers searches: start one with the role search")
	}
	if err != nil {
		return nil, false, errs.Wrap(err, errs.Unavailable, "q: the search was not answered")
	}
	var r reply
	if err := json.Unmarshal(m.Data, &r); err != nil {
		return nil, false, errs.Wrap(err, errs.Unavailable, "q: the search was not answered")
	}
	switch {
	case r.Error != "" && r.Invalid:
		return nil, false, errs.New(errs.Invalid, "%s", r.Error)
	case r.Error != "":
		return nil, false, errs.New(errs.Unavailable, "%s", r.Error)
	}
	return r.Hits, r.More, nil
}
