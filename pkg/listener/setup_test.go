package listener_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// setup sets up a listener, or only checks it, and counts the states of its consumers.
func setup(t *testing.T, b *bus.Bus, spec listener.Spec, check bool) map[bus.State]int {
	t.Helper()
	found, err := listener.Setup(t.Context(), b, spec, check)
	if err != nil {
		t.Fatal(err)
	}
	count := map[bus.State]int{}
	for _, f := range found {
		count[f.State]++
	}
	return count
}

func TestSetupCreatesAndUpdatesConsumers(t *testing.T) {
	t.Parallel()
	const n = event.Partitions + 1
	for name, c := range map[string]struct {
		spec, other listener.Spec
		consumers   int
		changed     int
	}{
		"plain":   {listener.Spec{Name: "test"}, listener.Spec{Name: "test", Stores: []string{"Books"}}, 2, 1},
		"patient": {listener.Spec{Name: "test"}, listener.Spec{Name: "test", AckWait: time.Minute}, 2, 2},
		"ordered": {listener.Spec{Name: "test", Ordered: true},
			listener.Spec{Name: "test", Ordered: true, Stores: []string{"Books"}}, n, n - 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			for i, step := range []struct {
				spec  listener.Spec
				check bool
				want  map[bus.State]int
			}{
				{c.spec, true, map[bus.State]int{bus.Missing: c.consumers}},
				{c.spec, false, map[bus.State]int{bus.Created: c.consumers}},
				{c.spec, true, map[bus.State]int{bus.InSync: c.consumers}},
				{c.other, true, map[bus.State]int{bus.Drifted: c.changed, bus.InSync: c.consumers - c.changed}},
				{c.other, false, map[bus.State]int{bus.Updated: c.changed, bus.InSync: c.consumers - c.changed}},
				{c.other, false, map[bus.State]int{bus.InSync: c.consumers}},
			} {
				got := setup(t, b, step.spec, step.check)
				for state := range got {
					if got[state] == 0 {
						delete(got, state)
					}
				}
				for state, want := range step.want {
					if got[state] != want {
						t.Fatalf("step %d finds %v, want %v", i, got, step.want)
					}
				}
			}
		})
	}
}

// A server that has restarted replies to the first update of a consumer with the settings from before it.
func TestSetupUpdatesAConsumerAfterARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := embedded.Options{Folder: t.TempDir()}
	b := openWith(t, bus.Options{Server: embedded.New(server)})
	spec := listener.Spec{Name: "test"}
	setup(t, b, spec, false)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b = openWith(t, bus.Options{Server: embedded.New(server)})
	spec.Stores = []string{"Books"}
	if got := setup(t, b, spec, false); got[bus.Updated] != 1 || got[bus.InSync] != 1 {
		t.Errorf("found %v", got)
	}
	if got := setup(t, b, spec, true); got[bus.InSync] != 2 {
		t.Errorf("found %v after the update", got)
	}
}

// A listener runs on the consumers that Setup created, with any concurrency.
func TestSetupDoesNotDependOnConcurrency(t *testing.T) {
	t.Parallel()
	b := open(t)
	setup(t, b, listener.Spec{Name: "test"}, false)
	for _, spec := range []listener.Spec{
		{Name: "test", Concurrency: 1000}, {Name: "test", Prefetch: -1}, {Name: "test", Concurrency: 4, BatchSize: 500},
	} {
		if got := setup(t, b, spec, true); got[bus.InSync] != 2 {
			t.Errorf("%+v finds %v", spec, got)
		}
	}
}

// A second setup, also with another start, keeps the position of the listener.
func TestSetupKeepsThePosition(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 10)
	spec := listener.Spec{Name: "test", Start: listener.StartAtSequence(4)}
	setup(t, b, spec, false)
	before := consumerOf(t, b)
	spec.Start, spec.Stores = listener.StartAll(), []string{"Books", "Users"}
	if got := setup(t, b, spec, false); got[bus.Updated] != 1 {
		t.Fatalf("found %v", got)
	}
	after := consumerOf(t, b)
	if after.Config.DeliverPolicy != before.Config.DeliverPolicy || after.Config.OptStartSeq != 4 ||
		after.Delivered != before.Delivered {
		t.Errorf("the position has changed: %+v", after)
	}
}

func consumerOf(t *testing.T, b *bus.Bus) *jetstream.ConsumerInfo {
	t.Helper()
	c, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo()
}

func TestInvalidSetupIsRejected(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, spec := range []listener.Spec{{}, {Name: "a.b"}, {Name: "a", Stores: []string{"*"}},
		{Name: "a", Filters: []string{"x"}, Stores: []string{"B"}}} {
		if found, err := listener.Setup(t.Context(), b, spec, true); !errors.Is(err, errs.Invalid) || len(found) > 0 {
			t.Errorf("%+v: %v, %v", spec, found, err)
		}
	}
	if _, _, err := listener.Permissions("a.b", false); !errors.Is(err, errs.Invalid) {
		t.Errorf("permissions for an invalid name: %v", err)
	}
	if err := b.JetStream().DeleteStream(t.Context(), bus.StreamRetry); err != nil {
		t.Fatal(err)
	}
	if got := setup(t, b, listener.Spec{Name: "test"}, true); got[bus.Missing] != 2 {
		t.Errorf("without a stream a check finds %v", got)
	}
	if _, err := listener.Setup(t.Context(), b, listener.Spec{Name: "test"}, false); !errors.Is(err, errs.Unavailable) {
		t.Errorf("without a stream a setup is %v", err)
	}
}

// A listener without the permission to create consumers reports which one is
// missing and what to do, and continues once it has been created.
func TestListenerWaitsForMissingConsumers(t *testing.T) {
	t.Parallel()
	publishes, subscribes, err := listener.Permissions("test", true)
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "nats.conf")
	text := fmt.Sprintf("authorization {users: [\n{user: admin, password: pw}\n{user: test, password: pw, "+
		"permissions: {publish: [\"%s\"], subscribe: [\"%s\"]}}\n]}\n",
		strings.Join(publishes, `", "`), strings.Join(subscribes, `", "`))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := openWith(t, bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0", Config: conf}),
		Auth:   bus.Auth{User: "admin", Password: "pw"},
	})
	b := openWith(t, bus.Options{URL: admin.ClientURL(), Unmanaged: true, Auth: bus.Auth{User: "test", Password: "pw"}})
	kit.WaitFor(t, "the bus is ready", func() bool { return b.Ready(t.Context()) == nil })

	type lack struct {
		consumer string
		err      error
	}
	lacks := make(chan lack, 10_000)
	handled := make(chan string, 100)
	spec := listener.Spec{
		Name: "test", Ordered: true, Start: listener.StartAll(),
		OnSetupError: func(consumer string, err error) { lacks <- lack{consumer, err} },
		Handler:      func(_ context.Context, e *listener.Event) error { handled <- e.UUID; return nil },
	}
	run(t, b, spec)
	spec.Filters = []string{event.Filter(event.StoreSaved, "Books")} // as run has it
	missing := map[string]bool{}
	for len(missing) < event.Partitions+1 {
		l := <-lacks
		switch {
		case l.err == nil:
			t.Fatalf("%s is reported without an error", l.consumer)
		case errors.Is(l.err, context.DeadlineExceeded): // the machine stalls, and the setup is retried
		case !strings.Contains(l.err.Error(), "is missing and can't be created") ||
			!strings.Contains(l.err.Error(), "belfry bus setup") || !strings.Contains(l.err.Error(), "--listener test"):
			t.Fatalf("%s: %v", l.consumer, l.err)
		default:
			missing[l.consumer] = true
		}
	}
	if !missing["RETRY.test"] || !missing["EVENTS.test-0"] || !missing["EVENTS.test-31"] {
		t.Errorf("reported as missing: %v", missing)
	}
	publish(t, admin, 0, 5)
	if got := setup(t, admin, spec, false); got[bus.Created] != event.Partitions+1 {
		t.Fatalf("created %v", got)
	}
	var seen []string
	for len(seen) < 5 {
		seen = append(seen, <-handled)
	}
	slices.Sort(seen)
	if got := strings.Join(seen, " "); got != "b0 b1 b2 b3 b4" {
		t.Errorf("it handles %s", got)
	}
	for len(missing) > 0 {
		if l := <-lacks; l.err == nil {
			delete(missing, l.consumer)
		}
	}
}

// vanishing is a bus on which somebody deletes the consumer of events while the server updates it, as often as vanish
// returns true.
type vanishing struct {
	*bus.Bus
	vanish func() bool
}

func (v vanishing) JetStream() jetstream.JetStream {
	return vanishingConsumer{v.Bus.JetStream(), v.vanish}
}

type vanishingConsumer struct {
	jetstream.JetStream
	vanish func() bool
}

func (v vanishingConsumer) CreateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if err := v.gone(stream); err != nil {
		return nil, err
	}
	return v.JetStream.CreateConsumer(ctx, stream, c)
}

func (v vanishingConsumer) CreateOrUpdateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if err := v.gone(stream); err != nil {
		return nil, err
	}
	return v.JetStream.CreateOrUpdateConsumer(ctx, stream, c)
}

func (v vanishingConsumer) gone(stream string) error {
	if stream == bus.StreamEvents && v.vanish() {
		return &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeConsumerDoesNotExist,
			Description: "consumer does not exist"}
	}
	return nil
}

// What a reset deletes while the server updates it is no mistake of the listener, which must neither end nor skip what
// happens until its consumer exists again.
func TestAConsumerThatIsDeletedWhileItIsPutIsPutAgain(t *testing.T) {
	t.Parallel()
	b := open(t)
	deleted, published := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(deleted); <-published })
	var puts atomic.Int32
	var s seen
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- listener.Run(ctx, vanishing{b, func() bool { first(); return puts.Add(1) <= 3 }},
			slog.New(slog.DiscardHandler), listener.Spec{
				Name: "test", Start: listener.StartNew(),
				Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil },
			})
	}()
	<-deleted
	publish(t, b, 0, 10)
	close(published)
	err := kit.Await(time.Minute, func() error {
		if n := s.distinct(); n != 10 && len(ended) == 0 {
			return fmt.Errorf("%d of 10 events are handled", n)
		}
		return nil
	})
	cancel()
	if ran := <-ended; err != nil || ran != nil || s.distinct() != 10 {
		t.Errorf("%d of 10 events are handled: %v, %v", s.distinct(), err, ran)
	}
}

// A process updates the consumers of its workers at a reload, and before it fills arrays.
func TestAProcessThatNeedsFurtherEventsDoesNotResumeAConsumer(t *testing.T) {
	t.Parallel()
	b := open(t)
	spec := listener.Spec{Name: "test", Start: listener.StartAll(), Filters: []string{"events.*.Store.Saved.Books.*"}}
	if _, err := listener.Setup(t.Context(), b, spec, false); err != nil {
		t.Fatal(err)
	}
	js := b.JetStream()
	if _, err := js.PauseConsumer(t.Context(), bus.StreamEvents, "test", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	paused := func() (bool, []string) {
		c, err := js.Consumer(t.Context(), bus.StreamEvents, "test")
		if err != nil {
			t.Fatal(err)
		}
		config := c.CachedInfo().Config
		return c.CachedInfo().Paused, append(config.FilterSubjects, config.FilterSubject)
	}
	for _, filters := range [][]string{spec.Filters, {"events.*.Store.Saved.Authors.*"}} {
		spec.Filters = filters
		if err := listener.Update(t.Context(), b, spec); err != nil {
			t.Fatal(err)
		}
		if is, of := paused(); !is || !slices.Contains(of, filters[0]) {
			t.Errorf("with %s it is paused: %t, and receives %s", filters, is, of)
		}
	}
	if _, err := listener.Setup(t.Context(), b, spec, false); err != nil {
		t.Fatal(err)
	}
	if is, _ := paused(); is {
		t.Error("a setup by an administrator leaves it paused")
	}
}
