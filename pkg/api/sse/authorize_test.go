package sse_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/api/sse"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// Clients receive, live and from the log, the events whose object the rule of get
// allows as it was in the event, and as it is when they are sent.
func TestClientsReceiveOnlyWhatTheRuleOfGetAllows(t *testing.T) {
	t.Parallel()
	owner := &policy.Rules{Owner: true}
	public := &policy.Rules{Get: `object.public == true || user != null && object.user == user.uuid`}
	large := fmt.Sprintf(`"pad":%q`, strings.Repeat("x", 256<<10-100))
	for name, c := range map[string]struct {
		rules   *policy.Rules
		private string
		history []string          // of the note n: an object to save, or "delete"
		want    map[string]string // by user: the initials of the received events
		later   map[string]string // of clients that connect later, where that differs
	}{
		"no rule": {nil, "", []string{`{}`, `{"a":1}`, "delete"},
			map[string]string{"": "SUD", "ada": "SUD"}, nil},
		"logged in": {&policy.Rules{Get: `user != null`}, "", []string{`{}`, `{"a":1}`, "delete"},
			map[string]string{"": "", "ada": "SUD"}, nil},
		"some user": {&policy.Rules{Get: `user != null && user.uuid == "ada"`}, "", []string{`{}`, "delete"},
			map[string]string{"": "", "ada": "SD", "bob": ""}, nil},
		"rule that can't be evaluated": {&policy.Rules{Get: `object.nothing == 1`}, "", []string{`{}`, "delete"},
			map[string]string{"ada": ""}, nil},
		"owner": {owner, "", []string{`{"user":"ada"}`, `{"a":1}`, "delete"},
			map[string]string{"": "", "ada": "SUD", "bob": ""}, nil},
		"public later": {public, "", []string{`{"user":"ada"}`, `{"public":true}`, "delete"},
			map[string]string{"": "UD", "ada": "SUD", "bob": "UD"}, nil},
		"private later": {public, "", []string{`{"user":"ada","public":true}`, `{"public":false}`, `{"a":1}`},
			map[string]string{"": "S", "ada": "SUU", "bob": "S"}, map[string]string{"": "", "bob": ""}},
		"transferred": {public, "", []string{`{"user":"ada"}`, `{"user":"bob"}`},
			map[string]string{"ada": "S", "bob": "U"}, map[string]string{"ada": ""}},
		"private, then deleted": {public, "", []string{`{"user":"ada","public":true}`, `{"public":false}`, "delete"},
			map[string]string{"": "S", "ada": "SUD"}, map[string]string{"": ""}},
		"private, deleted, and that once more": {public, "",
			[]string{`{"user":"ada","public":true}`, "delete", `{"user":"ada"}`, "delete"},
			map[string]string{"": "SD", "ada": "SDSD"}, map[string]string{"": ""}},
		"transferred, then deleted": {public, "", []string{`{"user":"ada"}`, `{"user":"bob"}`, "delete"},
			map[string]string{"ada": "S", "bob": "UD"}, map[string]string{"ada": ""}},
		"public, deleted, and private in a new incarnation": {public, "",
			[]string{`{"user":"ada","public":true}`, "delete", `{"user":"ada"}`},
			map[string]string{"": "SD", "ada": "SDS"}, map[string]string{"": ""}},
		"private, and public in a new incarnation of another user": {public, "",
			[]string{`{"user":"ada","public":true}`, `{"public":false}`, "delete", `{"user":"bob","public":true}`},
			map[string]string{"": "SS", "ada": "SUDS", "bob": "SS"}, map[string]string{"": "S", "bob": "S"}},
		"private, and public in one that is deleted": {public,
			"", []string{`{"user":"ada","public":true}`, `{"public":false}`, "delete", `{"user":"bob","public":true}`,
				"delete"},
			map[string]string{"": "SSD", "ada": "SUDSD", "bob": "SSD"}, map[string]string{"": "SD", "bob": "SD"}},
		"too large for an event": {public, "",
			[]string{`{"user":"ada","public":true,` + large + `}`, `{"public":false}`, `{"public":true}`},
			map[string]string{"": "SU", "ada": "SUU"}, map[string]string{"": "SUU"}},
		"too large, and deleted": {public, "", []string{`{"user":"ada","public":true,` + large + `}`, "delete"},
			map[string]string{"": "S", "ada": "S"}, map[string]string{"": "", "ada": ""}},
		"by a private field": {&policy.Rules{Get: `object.team == user.uuid`}, "team",
			[]string{`{"team":"ada"}`, `{"team":"bob"}`, "delete"},
			map[string]string{"ada": "S", "bob": "U"}, map[string]string{"ada": "", "bob": ""}},
		"by the absence of a private field": {&policy.Rules{Get: `!has(object.banned)`}, "banned",
			[]string{`{}`, `{"banned":true}`, `{"a":1}`, "delete"},
			map[string]string{"": "S"}, map[string]string{"": ""}},
		"by a private field, the last state": {&policy.Rules{Get: `object.team == user.uuid`}, "team",
			[]string{`{"team":"bob"}`, `{"team":"ada"}`},
			map[string]string{"ada": "U", "bob": "S"}, map[string]string{"bob": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.open("Books", nil)
			w.open("Notes", c.rules, strings.Fields(c.private)...)
			w.start()
			listen := func(s sse.Subscription) map[string]*testClient {
				all := map[string]*testClient{}
				for who := range c.want {
					viewer := anonymous()
					if who != "" {
						viewer = user(who)
					}
					all[who] = w.listen(s, viewer)
				}
				return all
			}
			check := func(all map[string]*testClient, when string, want ...map[string]string) {
				t.Helper()
				w.save("Books", "end", `{}`)
				for who, e := range all {
					kit.WaitUntil(t, func() error {
						if list := e.received(); len(list) == 0 || list[len(list)-1].data["uuid"] != "end" {
							return errors.New("the last event has not arrived")
						}
						return nil
					})
					got, expected := "", ""
					for _, m := range e.received() {
						if m.data["store"] == "Notes" {
							got += strings.TrimPrefix(m.event, "Store.")[:1]
						}
					}
					for _, w := range want {
						if text, ok := w[who]; ok {
							expected = text
							break
						}
					}
					if got != expected {
						t.Errorf("%s, %q receives %q, want %q", when, who, got, expected)
					}
				}
			}
			present := listen(sse.Subscription{})
			for i, step := range c.history {
				if step == "delete" {
					w.delete("Notes", "n")
				} else {
					w.save("Notes", "n", step)
				}
				// Each event is authorized before the next is written.
				w.save("Books", "mark", fmt.Sprintf(`{"step":%d}`, i))
				for _, e := range present {
					kit.WaitUntil(t, func() error {
						list := e.received()
						if len(list) > 0 &&
							strings.Contains(fmt.Sprint(list[len(list)-1].data["object"]), fmt.Sprintf("step:%d", i)) {
							return nil
						}
						return errors.New("the event of a step has not arrived")
					})
				}
			}
			check(present, "live", c.want)
			w.start(func(o *sse.Options) { o.Buffer = 1 }) // clients that connect now read the log
			check(listen(sse.Subscription{After: after("0")}), "later", c.later, c.want)
		})
	}
}

// A slow client that is sent an event late is authorized by the state of the object at
// that time, not by that of when other clients were sent it.
func TestALateEventIsAuthorizedByTheStateAtThatTime(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Notes", &policy.Rules{Get: `object.public`})
	w.start()
	quick, slow := w.listen(sse.Subscription{}, anonymous()), w.listen(sse.Subscription{}, anonymous())
	hold := make(chan struct{})
	slow.mu.Lock()
	slow.hold = hold
	slow.mu.Unlock()
	w.save("Notes", "first", `{"public":true}`)
	quick.receives("Store.Saved Notes first")
	kit.WaitFor(t, "the slow client is blocked", func() bool {
		slow.mu.Lock()
		defer slow.mu.Unlock()
		return slow.held > 0
	})
	w.save("Notes", "second", `{"public":true}`)
	quick.receives("Store.Saved Notes first", "Store.Saved Notes second")
	w.save("Notes", "second", `{"public":false}`)
	<-time.After(sse.StateTTL)
	slow.mu.Lock()
	slow.hold = nil
	slow.mu.Unlock()
	close(hold)
	w.save("Notes", "third", `{"public":true}`)
	slow.receives("Store.Saved Notes first", "Store.Saved Notes third")
}

// The end of a session ends its streams before anything later is sent; rules see a
// changed user as it is then.
func TestStreamsFollowTheirSessionAndUser(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.open("Notes", &policy.Rules{Get: `user.grade >= object.grade`})
	w.open("Sessions", nil)
	w.open("Users", &policy.Rules{Owner: true})
	w.start(func(o *sse.Options) {
		o.Identity = []string{"Sessions", "Users"}
		o.Stores = o.Stores[:2]
	})
	ada := func(grade string) *sse.Viewer {
		v := user("ada")
		v.User["grade"], v.Key = []byte(grade), "ada "+grade
		return v
	}
	e, other := w.listen(sse.Subscription{}, ada("1")), w.listen(sse.Subscription{}, anonymous())
	w.save("Notes", "a", `{"grade":2}`)
	w.save("Notes", "b", `{"grade":1}`)
	e.receives("Store.Saved Notes b")
	e.becomes(ada("2"), nil)
	w.save("Users", "ada", `{}`)
	w.save("Notes", "c", `{"grade":2}`)
	e.receives("Store.Saved Notes b", "Store.Saved Notes c")
	w.save("Sessions", "session-of-bob", `{}`)
	e.becomes(nil, errs.New(errs.Unauthenticated, "ended"))
	w.save("Books", "before", `{}`)
	w.save("Sessions", "session-of-ada", `{}`)
	w.save("Books", "after", `{}`)
	if reason := e.ends(); reason != "your session has ended: log in again" {
		t.Errorf("the reason is %q", reason)
	}
	e.receives("Store.Saved Notes b", "Store.Saved Notes c", "Store.Saved Books before", "dropped")
	other.receives("Store.Saved Books before", "Store.Saved Books after")
	if other.mu.Lock(); other.asked != 1 {
		t.Errorf("the anonymous client was authenticated %d times", other.asked)
	}
	other.mu.Unlock()
}

// gets records the reads that a store announces.
type gets struct {
	mu   sync.Mutex
	seen []event.Name
}

func (g *gets) HasInterest(event.Name) bool { return true }

func (g *gets) Live(name event.Name, _ []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = append(g.seen, name)
}

// The read of an authorization is not announced as a get.
func TestAuthorizationIsNotAnnouncedAsAGet(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	announced := &gets{}
	w.stores["Notes"] = w.open("Notes",
		&policy.Rules{Owner: true}).WithOptions(func(o *store.Options) { o.Announce = announced })
	w.start()
	e := w.listen(sse.Subscription{}, user("ada"))
	w.save("Notes", "a", `{"user":"ada"}`)
	e.receives("Store.Saved Notes a")
	announced.mu.Lock()
	defer announced.mu.Unlock()
	if slices.Contains(announced.seen, event.StoreGet) {
		t.Errorf("%v", announced.seen)
	}
}

// A session that has ended without an event is noticed by the next heartbeat.
func TestAnEndedSessionIsFoundByTheHeartbeat(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start(func(o *sse.Options) { o.Heartbeat = 10 * time.Millisecond })
	e := w.listen(sse.Subscription{}, user("ada"))
	e.becomes(nil, errs.New(errs.Unauthenticated, "over"))
	if reason := e.ends(); reason != "your session has ended: log in again" {
		t.Errorf("the reason is %q", reason)
	}
}

// While a client can't be authenticated it is sent heartbeats alone; afterwards
// everything.
func TestNothingIsSentWhileAuthenticationIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start(func(o *sse.Options) { o.Heartbeat = 10 * time.Millisecond })
	e, other := w.listen(sse.Subscription{}, user("ada")), w.listen(sse.Subscription{}, anonymous())
	e.becomes(nil, errs.New(errs.Unavailable, "unavailable"))
	beats := e.heartbeats()
	kit.WaitUntil(t, func() error {
		if e.heartbeats() < beats+2 {
			return errors.New("no heartbeat")
		}
		return nil
	})
	w.save("Books", "a", `{}`)
	other.receives("Store.Saved Books a")
	e.receives()
	e.becomes(user("ada"), nil)
	e.receives("Store.Saved Books a")
}

// unreliable is a backend whose stores can be made unavailable.
type unreliable struct {
	driver.Backend
	mu   sync.Mutex
	gets int
	err  error
}

func (a *unreliable) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := a.Backend.Open(ctx, spec)
	return unreliableStore{s, a}, err
}

func (a *unreliable) set(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

type unreliableStore struct {
	driver.Store
	backend *unreliable
}

func (s unreliableStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	s.backend.mu.Lock()
	err := s.backend.err
	s.backend.gets++
	s.backend.mu.Unlock()
	if err != nil {
		return driver.Record{}, false, err
	}
	return s.Store.Get(ctx, uuid)
}

// The window holds events for long, each with decisions for many users, which are
// released when they expire.
func TestDecisionsAreReleased(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Notes", &policy.Rules{Get: `object.user == user.uuid || object.public`})
	w.start()
	const users, events = 20, 5
	var clients []*testClient
	for i := range users {
		clients = append(clients, w.listen(sse.Subscription{}, user(fmt.Sprint("user-", i))))
	}
	sent := 0
	send := func(uuid string) {
		t.Helper()
		w.save("Notes", uuid, fmt.Sprintf(`{"public":true,"n":%d}`, sent))
		sent++
		for _, e := range clients {
			kit.WaitUntil(t, func() error {
				if n := len(e.received()); n != sent {
					return fmt.Errorf("%d of %d have arrived", n, sent)
				}
				return nil
			})
		}
	}
	for range events {
		send("first")
	}
	if n := sse.Decisions(w.hub, "first"); n == 0 {
		t.Fatal("there are no decisions")
	}
	kit.WaitUntil(t, func() error {
		send("later")
		if n := sse.Decisions(w.hub, "first"); n > 0 {
			return fmt.Errorf("%d decisions are still held", n)
		}
		return nil
	})
}

// An unavailable store delays the events that have to be authorized, and none is
// lost. Any number of clients cause one read.
func TestAnUnavailableStoreDelaysEventsAndLosesNone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	backend := &unreliable{Backend: w.backend}
	w.backend = backend
	w.open("Notes", &policy.Rules{Owner: true})
	w.start()
	var all []*testClient
	for range 20 {
		all = append(all, w.listen(sse.Subscription{}, user("ada")))
	}
	w.save("Notes", "a", `{"user":"ada"}`)
	for _, e := range all {
		e.receives("Store.Saved Notes a")
	}
	backend.set(errs.New(errs.Unavailable, "unavailable"))
	w.publish(event.Subject(event.StoreUpdated, "Notes", "a"), strings.NewReplacer("Books", "Notes", "Store.Saved",
		"Store.Updated", `"n":1`, `"user":"ada"`, `"revision":"1"`,
		fmt.Sprintf(`"revision":"%d"`, time.Now().UnixMicro())).Replace(envelope("a", 1, "")))
	w.bus.Live(event.StoreUpdated, nil)
	kit.WaitUntil(t, func() error {
		backend.mu.Lock()
		defer backend.mu.Unlock()
		if backend.gets == 0 {
			return errors.New("the store has not been read")
		}
		backend.err, backend.gets = nil, 0
		return nil
	})
	for _, e := range all {
		e.receives("Store.Saved Notes a", "Store.Updated Notes a")
	}
	backend.mu.Lock()
	defer backend.mu.Unlock()
	if backend.gets > len(all)/2 {
		t.Errorf("%d clients caused %d reads", len(all), backend.gets)
	}
}
