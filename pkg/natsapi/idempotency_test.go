package natsapi_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/wire"
	"belfry/test/kit"
)

// stage makes what a case needs: two objects.
func (w *fixture) stage() {
	w.Helper()
	w.want("", wire.Save, `{"object":{"uuid":"emma","title":"Emma"}}`)
	w.want("", wire.Save, `{"object":{"uuid":"kim","title":"Kim"}}`)
}

// keyed are writes that have an effect, and the events of their objects after it.
var keyed = []struct{ op, body, uuid, events string }{
	{wire.Save, `{"object":{"uuid":"new","title":"t"}}`, "new", "Saved"},
	{wire.Save, `{"object":{"title":"t"},"uuid":"new"}`, "new", "Saved"},
	{wire.Save, `{"object":{"title":"t"}}`, "", "Saved"},
	{wire.Update, `{"uuid":"emma","object":{"year":1815}}`, "emma", "Saved Updated"},
	{wire.Delete, `{"uuid":"emma"}`, "emma", "Saved Deleted"},
}

func TestRepeatedRequestHasOneEffectAndTheSameReply(t *testing.T) {
	for _, c := range keyed {
		t.Run(c.op+" "+c.body, func(t *testing.T) {
			w := open(t)
			w.stage()
			first := w.want("", c.op, c.body, key("k")...)
			again := w.want("", c.op, strings.ReplaceAll(c.body, ":", " : "), key("k")...)
			if again.body != first.body {
				t.Errorf("%s, then %s", first.body, again.body)
			}
			w.serve() // another server knows the answer too
			for range 5 {
				if a := w.want("", c.op, c.body, key("k")...); a.body != first.body {
					t.Errorf("%s, then %s", first.body, a.body)
				}
			}
			w.oneEffect(c.uuid, first, c.events)
			w.want("409", c.op, other(c.body), key("k")...)
			w.oneEffect(c.uuid, first, c.events)
		})
	}
}

// other makes a body that of another request.
func other(body string) string {
	return strings.NewReplacer(`"t"`, `"u"`, "1815", "1816", `{"uuid":"emma"}`, `{"uuid":"kim"}`).Replace(body)
}

// oneEffect checks the events of an object; without a uuid, of the one in the answer.
func (w *fixture) oneEffect(uuid string, a answer, events string) {
	w.Helper()
	if uuid == "" {
		uuid, _ = object.Text(object.Field(a.reply.Object, "uuid"))
	}
	if got := w.outbox.of(uuid); got != events {
		w.Errorf("the events of %s are %q, want %q", uuid, got, events)
	}
}

func TestFinalErrorsAreStoredReplies(t *testing.T) {
	w := open(t)
	w.stage()
	stored, err := w.books.Get(t.Context(), "emma")
	w.must(err)
	for name, c := range map[string]struct{ status, op, body, after string }{
		"exists":   {"409", wire.Save, `{"object":{"uuid":"emma"}}`, wire.Delete},
		"invalid":  {"400", wire.Save, `{"object":{"year":"x"}}`, ""},
		"missing":  {"404", wire.Delete, `{"uuid":"later"}`, wire.Save},
		"mismatch": {"412", wire.Update, fmt.Sprintf(`{"uuid":"kim","revision":%d,"object":{}}`, stored.Revision), ""},
	} {
		first := w.want(c.status, c.op, c.body, key(name)...)
		switch c.after {
		case wire.Delete:
			w.want("", wire.Delete, `{"uuid":"emma"}`)
		case wire.Save:
			w.want("", wire.Save, `{"object":{"uuid":"later"}}`)
		}
		if again := w.want(c.status, c.op, c.body, key(name)...); again.body != first.body || again.text != first.text {
			t.Errorf("%s: %+v, then %+v", name, first, again)
		}
	}
}

func TestKeyIsForOneRequest(t *testing.T) {
	w := open(t)
	w.stage()
	w.want("", wire.Update, `{"uuid":"emma","object":{"year":1}}`, key("k")...)
	for _, c := range []struct{ op, body, actor string }{
		{wire.Update, `{"uuid":"emma","object":{"year":2}}`, ""},
		{wire.Update, `{"uuid":"kim","object":{"year":1}}`, ""},
		{wire.Update, `{"uuid":"emma","revision":1,"object":{"year":1}}`, ""},
		{wire.Save, `{"uuid":"emma","object":{"year":1}}`, ""},
		{wire.Delete, `{"uuid":"emma"}`, ""},
		{wire.Update, `{"uuid":"emma","object":{"year":1}}`, "ada"},
	} {
		headers := key("k")
		if c.actor != "" {
			headers = append(headers, wire.HeaderActor, c.actor)
		}
		if a := w.want("409", c.op, c.body, headers...); !strings.Contains(a.text, "another request") {
			t.Error(a.text)
		}
	}
	w.want("", wire.Get, `{"uuid":"emma"}`, key("k")...) // reading needs no key
	if got := w.outbox.of("emma") + w.outbox.of("kim"); got != "Saved UpdatedSaved" {
		t.Error(got)
	}
}

func TestKeysExpire(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.serve()
	keys := idempotent.New(idempotent.Options{Requests: w.requests, Now: w.now.now})
	first := w.want("", wire.Save, `{"object":{"title":"t"}}`, key("k")...)
	w.now.forward(idempotent.KeyRetention - time.Minute)
	if again := w.want("", wire.Save, `{"object":{"title":"t"}}`, key("k")...); again.body != first.body {
		t.Errorf("%s, then %s", first.body, again.body)
	}
	if n, err := keys.DeleteExpired(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	w.now.forward(2 * time.Minute)
	if again := w.want("", wire.Save, `{"object":{"title":"t"}}`, key("k")...); again.body == first.body {
		t.Error("the key is still known")
	}
	w.want("", wire.Save, `{"object":{}}`, key("k2")...)
	w.now.forward(idempotent.KeyRetention + time.Minute)
	for _, want := range []int{1, 1, 0} {
		if n, err := keys.DeleteExpired(t.Context(), 1); n != want || err != nil {
			t.Errorf("%d removed, want %d, %v", n, want, err)
		}
	}
	if n, _, err := w.requests.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// TestServerFailsBetweenTheSteps cuts the backend off at each write that a
// keyed request makes, before it is made and after it.
func TestServerFailsBetweenTheSteps(t *testing.T) {
	for _, c := range keyed {
		for _, cut := range []string{"Requests 1", "Books 1", "Requests 2"} {
			for _, after := range []bool{false, true} {
				for _, elsewhere := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s %s, cut at %s, after %t, elsewhere %t", c.op, c.body, cut, after, elsewhere),
						func(t *testing.T) {
							t.Parallel()
							fault := &faultyBackend{}
							w := newFixture(t, nil,
								func(b driver.Backend) driver.Backend { fault.Backend = b; return fault })
							s := w.serve()
							w.stage()
							writes := map[string]int{}
							fault.set(func(store string, _ driver.Write) (error, error) {
								writes[store]++
								if fmt.Sprint(store, " ", writes[store]) != cut {
									return nil, nil
								}
								if after {
									return nil, errUnavailable
								}
								return errUnavailable, nil
							})
							w.want("503", c.op, c.body, key("k")...)
							fault.set(nil)
							if elsewhere {
								w.must(s.Stop(t.Context()))
								w.now.forward(time.Minute)
								w.serve()
							}
							first := w.want("", c.op, c.body, key("k")...)
							if again := w.want("", c.op, c.body, key("k")...); again.body != first.body {
								t.Errorf("%s, then %s", first.body, again.body)
							}
							w.oneEffectIn(c.uuid, first, c.events)
						})
				}
			}
		}
	}
}

// oneEffectIn is oneEffect by what waits in the record: a write whose end was
// not seen is published by the sweep.
func (w *fixture) oneEffectIn(uuid string, a answer, events string) {
	w.Helper()
	if uuid == "" {
		uuid, _ = object.Text(object.Field(a.reply.Object, "uuid"))
	}
	pending, _, err := w.books.Driver().Pending(w.Context(), nil, 1000)
	w.must(err)
	var names []string
	for _, p := range pending {
		if p.UUID == uuid {
			names = append(names, strings.Split(p.Subject, ".")[3])
		}
	}
	if got := strings.Join(names, " "); got != events {
		w.Errorf("the events of %s are %q, want %q", uuid, got, events)
	}
}

func TestAppliedWriteIsFoundAfterLaterWrites(t *testing.T) {
	fault := &faultyBackend{}
	cutAnswer := func() {
		n := 0
		fault.set(func(string, driver.Write) (error, error) {
			if n++; n == 3 {
				return errUnavailable, nil
			}
			return nil, nil
		})
	}
	w := newFixture(t, nil, func(b driver.Backend) driver.Backend { fault.Backend = b; return fault })
	w.serve()
	w.stage()
	for i, c := range []struct{ op, body, between, status, events string }{
		{wire.Update, `{"uuid":"emma","object":{"year":1}}`, `{"uuid":"emma","object":{"title":"E"}}`, "",
			"Saved Updated Updated"},
		{wire.Save, `{"uuid":"new","object":{"year":1}}`, `{"uuid":"new","object":{"title":"E"}}`, "", "Saved Updated"},
		// Deleted by others: whether it was applied is unknown, and it is not applied again.
		{wire.Update, `{"uuid":"emma","object":{"year":2}}`, "", "409", "Saved Updated Updated Updated Deleted"},
		{wire.Save, `{"uuid":"newer","object":{"year":1}}`, "", "409", "Saved Deleted"},
	} {
		k := key(fmt.Sprint("k", i))
		uuid := strings.Split(c.body, `"`)[3]
		cutAnswer()
		w.want("503", c.op, c.body, k...)
		if c.between != "" {
			w.want("", wire.Update, c.between)
		} else {
			w.want("", wire.Delete, `{"uuid":"`+uuid+`"}`)
		}
		first := w.want(c.status, c.op, c.body, k...)
		if again := w.want(c.status, c.op, c.body, k...); first.body != again.body {
			t.Errorf("%s, then %s", first.body, again.body)
		}
		if got := w.outbox.of(uuid); got != c.events {
			t.Errorf("%s %s: events %q, want %q", c.op, c.body, got, c.events)
		}
	}
	// A repeated deletion does not delete an object that was created again.
	cutAnswer()
	w.want("503", wire.Delete, `{"uuid":"kim"}`, key("d")...)
	w.want("", wire.Save, `{"object":{"uuid":"kim"}}`)
	w.want("409", wire.Delete, `{"uuid":"kim"}`, key("d")...)
	w.want("", wire.Get, `{"uuid":"kim"}`)
}

func TestConcurrentRepetitionsHaveOneEffect(t *testing.T) {
	w := newFixture(t, nil, nil)
	w.serve()
	w.serve()
	w.stage()
	for round := range 10 {
		for n, c := range keyed {
			if c.op == wire.Delete || c.uuid == "new" {
				continue
			}
			k := key(fmt.Sprint(round, "-", n))
			bodies := make(chan string, 12)
			var asking sync.WaitGroup
			for range cap(bodies) {
				asking.Go(func() {
					a, err := w.try(c.op, c.body, k...)
					if err != nil || a.status != "" {
						t.Errorf("%s %+v, %v", c.op, a, err)
					}
					bodies <- a.body
				})
			}
			asking.Wait()
			first := <-bodies
			for range cap(bodies) - 1 {
				if b := <-bodies; b != first {
					t.Fatalf("two answers: %s and %s", first, b)
				}
			}
		}
	}
	if got := w.outbox.of("emma"); got != "Saved"+strings.Repeat(" Updated", 10) {
		t.Error(got)
	}
	if n, _, err := w.books.Count(t.Context()); n != 2+10 || err != nil {
		t.Errorf("%d books, %v", n, err)
	}
}

// TestTakeoverMakesOneWrite lets two servers make the same request at the very
// same time: each has found that there is nothing yet.
func TestTakeoverMakesOneWrite(t *testing.T) {
	for _, c := range keyed {
		t.Run(c.op+" "+c.body, func(t *testing.T) {
			var armed atomic.Bool
			both := make(chan struct{})
			var arrived atomic.Int32
			fault := &faultyBackend{fault: func(store string, _ driver.Write) (error, error) {
				if store != "Books" || !armed.Load() {
					return nil, nil
				}
				if arrived.Add(1) == 2 {
					close(both)
				}
				select {
				case <-both:
				case <-t.Context().Done(): // the test has failed
				}
				return nil, nil
			}}
			w := newFixture(t, nil, func(b driver.Backend) driver.Backend { fault.Backend = b; return fault })
			w.options.TakeoverDelay = time.Millisecond // the second one begins soon
			w.serve()
			w.stage()
			w.serve()
			armed.Store(true)
			// Which of the two gets a request is random: more are sent until both have some.
			const most = 60
			answers := make(chan answer, most)
			asked := 0
			kit.WaitFor(t, "both servers are at the write", func() bool {
				if asked < most {
					asked++
					go func() {
						a, err := w.try(c.op, c.body, key("k")...)
						if err != nil {
							a.status = err.Error()
						}
						answers <- a
					}()
				}
				return arrived.Load() >= 2
			})
			first := <-answers
			for range asked - 1 {
				if a := <-answers; a.status != first.status || a.body != first.body {
					t.Errorf("%+v and %+v", first, a)
				}
			}
			if first.status != "" || arrived.Load() < 2 {
				t.Errorf("%+v, %d writes were tried", first, arrived.Load())
			}
			w.oneEffect(c.uuid, first, c.events)
		})
	}
}

func TestObjectHoldsFewRequests(t *testing.T) {
	w := open(t)
	w.stage()
	for i := range 200 {
		w.want("", wire.Update, fmt.Sprintf(`{"uuid":"emma","object":{"year":%d}}`, i), key(fmt.Sprint("k", i))...)
	}
	stored, err := w.books.Get(store.WithCall(t.Context(), store.Call{}), "emma")
	w.must(err)
	if n := strings.Count(string(object.Field(stored.Body, "_requests")), ":"); n == 0 || n > 64 {
		t.Errorf("the object holds %d requests", n)
	}
	if a := w.want("", wire.Update, `{"uuid":"emma","object":{"year":0}}`,
		key("k0")...); a.reply.Revision >= stored.Revision {
		t.Error("an old request was made again")
	}
}

// TestNoRequestWaitsForAClockThatWasSetBack: the server that began the request failed while the clock was an
// hour ahead. Another one does not wait until the clock shows that time again.
func TestNoRequestWaitsForAClockThatWasSetBack(t *testing.T) {
	fault := &faultyBackend{}
	w := newFixture(t, nil, func(b driver.Backend) driver.Backend { fault.Backend = b; return fault })
	s := w.serve()
	w.now.forward(time.Hour)
	fault.set(func(store string, _ driver.Write) (error, error) {
		if store == "Books" {
			return errUnavailable, nil
		}
		return nil, nil
	})
	w.want("503", wire.Save, `{"object":{"uuid":"emma"}}`, key("k")...)
	fault.set(nil)
	w.must(s.Stop(t.Context()))
	w.now.forward(-time.Hour)
	w.serve()
	w.want("", wire.Save, `{"object":{"uuid":"emma"}}`, key("k")...)
}

// TestAKeyedDeletionIsNotTakenForAnother: the clock was set back, so that revisions go on one by one, and the
// object is deleted without a key when the keyed deletion has chosen its revision.
func TestAKeyedDeletionIsNotTakenForAnother(t *testing.T) {
	fault := &faultyBackend{}
	w := newFixture(t, nil, func(b driver.Backend) driver.Backend { fault.Backend = b; return fault })
	w.serve()
	w.now.forward(time.Hour)
	w.stage()
	w.now.forward(-time.Hour)
	var once sync.Once
	fault.set(func(store string, _ driver.Write) (error, error) {
		if store == "Requests" {
			once.Do(func() { w.want("", wire.Delete, `{"uuid":"emma"}`) })
		}
		return nil, nil
	})
	w.want("409", wire.Delete, `{"uuid":"emma"}`, key("k")...)
}
