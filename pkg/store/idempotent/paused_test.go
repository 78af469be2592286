package idempotent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/idempotent"
)

// fixture is a store Books with an object emma. Its locker locks nothing, so that executors behave like those of
// several processes.
type fixture struct {
	*testing.T
	books, requests *store.Store

	mu    sync.Mutex
	ahead time.Duration // of the clock of all processes
}

type unlocked struct{}

func (unlocked) Lock(context.Context, string) (func(), error) { return func() {}, nil }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t}
	file, err := filestore.Open(t.TempDir(), filestore.Options{})
	f.must(err)
	t.Cleanup(func() { f.must(file.Close()) })
	backend := pausing{file}
	f.books, err = store.Open(t.Context(), backend, store.Options{Name: "Books", Locker: unlocked{}, Now: f.now})
	f.must(err)
	o := idempotent.RequestsOptions("Requests")
	o.Locker, o.Now = unlocked{}, f.now
	f.requests, err = store.Open(t.Context(), backend, o)
	f.must(err)
	f.save("emma")
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Add(f.ahead)
}

func (f *fixture) forward(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead += d
}

// process returns the executor of another process.
func (f *fixture) process() *idempotent.Executor {
	return idempotent.New(idempotent.Options{Requests: f.requests, Now: f.now, TombstoneRetention: 24 * time.Hour})
}

func (f *fixture) save(uuid string) {
	f.Helper()
	_, err := f.books.Save(f.Context(), object.Object{}, uuid)
	f.must(err)
}

// request returns a request with the key "k".
func (f *fixture) request(op idempotent.Op, uuid string) *idempotent.Request {
	reply := func(o store.Stored) idempotent.Reply {
		return idempotent.Reply{Status: 200, Body: fmt.Appendf(nil, `{"uuid":%q,"revision":%d}`, o.UUID, o.Revision)}
	}
	return &idempotent.Request{
		ID: idempotent.KeyID("k", "Books"), Fingerprint: idempotent.Fingerprint(fmt.Sprint(op), uuid), Op: op,
		Store: f.books, UUID: uuid,
		Perform: func(ctx context.Context, uuid string, i *store.Idempotency) (idempotent.Reply, error) {
			ctx = store.WithCall(ctx, store.Call{Idempotency: i})
			switch op {
			case idempotent.Save:
				o, err := f.books.Save(ctx, object.Object{}, uuid)
				return reply(o), err
			case idempotent.Update:
				o, err := f.books.Update(ctx, object.Object{"year": []byte("1815")}, store.UpdateOptions{UUID: uuid})
				return reply(o), err
			default:
				return idempotent.Reply{Status: 204, Body: []byte("{}")}, f.books.Delete(ctx, uuid, 0)
			}
		},
		Applied: func(ctx context.Context, status store.WriteStatus) idempotent.Reply {
			if op == idempotent.Delete {
				return idempotent.Reply{Status: 204, Body: []byte("{}")}
			}
			return reply(f.books.Reply(ctx, status))
		},
		Failed: func(err error) idempotent.Reply {
			return idempotent.Reply{Status: 409, Body: object.AppendString(nil, err.Error())}
		},
	}
}

// events returns the names of the events of an object, in the order of its writes.
func (f *fixture) events(uuid string) string {
	f.Helper()
	pending, _, err := f.books.Driver().Pending(f.Context(), nil, 1000)
	f.must(err)
	var names []string
	for _, p := range pending {
		if p.UUID == uuid {
			names = append(names, strings.Split(p.Subject, ".")[3])
		}
	}
	return strings.Join(names, " ")
}

// pause stops the process whose context has it, at one of its writes: "Books 1 before" is before the first one to Books
// is made, "Books 1 after" is when it is made and nobody knows it yet.
type pause struct {
	at      string
	writes  map[string]int
	reached chan struct{}
	resume  chan struct{}
}

type pauseKey struct{}

func (p *pause) wait(store, when string) {
	if fmt.Sprint(store, " ", p.writes[store], " ", when) == p.at {
		close(p.reached)
		<-p.resume
	}
}

// pausing is a backend with writes at which processes are paused.
type pausing struct{ driver.Backend }

func (b pausing) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return pausingStore{s, spec.Name}, err
}

type pausingStore struct {
	driver.Store
	name string
}

func (s pausingStore) Put(ctx context.Context, w driver.Write) error {
	p, _ := ctx.Value(pauseKey{}).(*pause)
	if p == nil {
		return s.Store.Put(ctx, w)
	}
	p.writes[s.name]++
	p.wait(s.name, "before")
	err := s.Store.Put(ctx, w)
	p.wait(s.name, "after")
	return err
}

// TestAProcessThatIsPausedPastItsLeaseHasNoFurtherEffect: one process is paused at any of its writes until the other
// one has taken its request over, and others have written or created the object again since. Both reply the same, and
// the write was made once.
func TestAProcessThatIsPausedPastItsLeaseHasNoFurtherEffect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op     idempotent.Op
		uuid   string
		events string
	}{
		{idempotent.Save, "new", "Saved"}, {idempotent.Save, "", "Saved"}, {idempotent.Update, "emma", "Saved Updated"},
		{idempotent.Delete, "emma", "Saved Deleted"},
	} {
		for _, store := range []string{"Requests 1", "Books 1", "Requests 2"} {
			for _, when := range []string{"before", "after"} {
				for _, meanwhile := range []string{"", "written", "created again"} {
					t.Run(fmt.Sprintf("%d of %q, paused %s %s, %s", c.op, c.uuid, when, store, meanwhile),
						func(t *testing.T) {
							t.Parallel()
							f := newFixture(t)
							p := &pause{at: store + " " + when, writes: map[string]int{}, reached: make(chan struct{}),
								resume: make(chan struct{})}
							type result struct {
								idempotent.Reply
								error
							}
							paused := make(chan result, 1)
							go func() {
								r, err := f.process().Do(context.WithValue(t.Context(), pauseKey{}, p),
									f.request(c.op, c.uuid))
								paused <- result{r, err}
							}()
							select {
							case <-p.reached:
							case r := <-paused:
								t.Fatalf("it was not paused: %+v", r)
							}
							f.forward(idempotent.DefaultTakeoverDelay + time.Second)
							second, err := f.process().Do(t.Context(), f.request(c.op, c.uuid))
							f.must(err)
							events := c.events + f.meanwhile(meanwhile, second.UUID)
							close(p.resume)
							first := <-paused
							third, err := f.process().Do(t.Context(), f.request(c.op, c.uuid))
							f.must(errors.Join(first.error, err))
							for _, r := range []idempotent.Reply{first.Reply, third} {
								if r.Status != second.Status || r.UUID != second.UUID ||
									string(r.Body) != string(second.Body) || r.Status >= 400 {
									t.Errorf("%+v, and the process that took over replied %+v", r, second)
								}
							}
							if got := f.events(second.UUID); got != events || !third.Replayed {
								t.Errorf("events %q, want %q", got, events)
							}
						})
				}
			}
		}
	}
}

// meanwhile writes, and returns the events of that.
func (f *fixture) meanwhile(what, uuid string) string {
	f.Helper()
	exists, err := f.books.Exists(f.Context(), uuid)
	f.must(err)
	events := ""
	switch what {
	case "written":
		if exists {
			_, err := f.books.Update(f.Context(), object.Object{"year": []byte("1")}, store.UpdateOptions{UUID: uuid})
			f.must(err)
			return " Updated"
		}
	case "created again":
		if exists {
			f.must(f.books.Delete(f.Context(), uuid, 0))
			events = " Deleted"
		}
		f.save(uuid)
		return events + " Saved"
	}
	return events
}

// TestAKeyIsForOneRequest: another request with the key is refused, whichever process has executed the first one.
func TestAKeyIsForOneRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.process().Do(t.Context(), f.request(idempotent.Update, "emma"))
	f.must(err)
	_, err = f.process().Do(t.Context(), f.request(idempotent.Delete, "emma"))
	if !errors.Is(err, errs.Conflict) {
		t.Error(err)
	}
	if got := f.events("emma"); got != "Saved Updated" {
		t.Errorf("events %q", got)
	}
}
