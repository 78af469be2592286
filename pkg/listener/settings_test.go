package listener_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// A release of NATS with a new setting needs a decision about it.
func TestEverySettingOfAConsumerIsWantedOrLeftToAnAdministrator(t *testing.T) {
	t.Parallel()
	known := map[string]int{}
	for _, s := range listener.ConsumerSettings {
		known[s.Key]++
	}
	for key := range listener.KeptSettings {
		known[key]++
	}
	config := reflect.TypeFor[jetstream.ConsumerConfig]()
	for i := range config.NumField() {
		key, _, _ := strings.Cut(config.Field(i).Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		if known[key] != 1 {
			t.Errorf("%s is in %d of the tables of settings, want 1", key, known[key])
		}
		delete(known, key)
	}
	for key := range known {
		t.Errorf("no consumer has a setting %s", key)
	}
}

// unwanted is what a consumer can have in place of what a listener wants.
type unwanted struct {
	key      string // that is reported
	stream   string // EVENTS if it is ""
	change   func(*jetstream.ConsumerConfig)
	recreate bool
}

func unwantedSettings() []unwanted {
	type config = jetstream.ConsumerConfig
	pinned := func(c *config) {
		c.PriorityGroups, c.PriorityPolicy, c.PinnedTTL = []string{"g"}, jetstream.PriorityPolicyPinned, time.Minute
	}
	return []unwanted{
		{key: "filter", change: func(c *config) { c.FilterSubjects = []string{"events.1.Store.>"} }},
		{key: "filter", change: func(c *config) { c.FilterSubjects, c.FilterSubject = nil, "events.>" }},
		{key: "ack_policy", change: func(c *config) { c.AckPolicy = jetstream.AckAllPolicy }, recreate: true},
		{key: "ack_policy",
			change:   func(c *config) { c.AckPolicy, c.AckWait, c.MaxAckPending = jetstream.AckNonePolicy, 0, 0 },
			recreate: true},
		{key: "ack_wait", change: func(c *config) { c.AckWait = time.Second }},
		{key: "ack_wait", stream: bus.StreamRetry, change: func(c *config) { c.AckWait = time.Second }},
		{key: "max_deliver", change: func(c *config) { c.MaxDeliver = 3 }},
		{key: "max_deliver", stream: bus.StreamRetry, change: func(c *config) { c.MaxDeliver = 3 }},
		{key: "max_ack_pending", change: func(c *config) { c.MaxAckPending = 1 }},
		{key: "backoff", change: func(c *config) { c.BackOff = []time.Duration{time.Second} }},
		{key: "max_batch", change: func(c *config) { c.MaxRequestBatch = 1 }},
		{key: "max_expires", change: func(c *config) { c.MaxRequestExpires = time.Millisecond }},
		{key: "max_bytes", change: func(c *config) { c.MaxRequestMaxBytes = 10 }},
		{key: "headers_only", change: func(c *config) { c.HeadersOnly = true }},
		{key: "deliver_subject", change: func(c *config) { c.DeliverSubject = "mine" }, recreate: true},
		{key: "priority_groups", change: pinned},
		{key: "priority_policy", change: pinned},
		{key: "priority_timeout", change: pinned},
		{key: "max_waiting", change: func(c *config) { c.MaxWaiting = 1 }, recreate: true},
		{key: "replay_policy", change: func(c *config) { c.ReplayPolicy = jetstream.ReplayOriginalPolicy },
			recreate: true},
		{key: "deliver_policy", change: func(c *config) { c.DeliverPolicy = jetstream.DeliverLastPolicy },
			recreate: true},
		{key: "deliver_policy", change: func(c *config) { c.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy },
			recreate: true},
		{key: "inactive_threshold", change: func(c *config) { c.InactiveThreshold = time.Hour }},
		{key: "mem_storage", change: func(c *config) { c.MemoryStorage = true }, recreate: true},
		{key: "mem_storage", stream: bus.StreamRetry, change: func(c *config) { c.MemoryStorage = true },
			recreate: true},
		{key: "num_replicas", change: func(c *config) { c.Replicas = 1 }},
	}
}

// Whatever a consumer has instead of what a promise depends on is reported, changed if the server does that, and
// otherwise reported until the consumer has been recreated.
func TestSettingsThatListenersDependOnAreAsWanted(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 3)
	covered := map[string]bool{}
	for _, c := range unwantedSettings() {
		if c.stream == "" {
			c.stream = bus.StreamEvents
		}
		covered[c.key] = true
		t.Run(c.stream+" "+c.key, func(t *testing.T) { checkUnwanted(t, b, c) })
	}
	for _, s := range listener.ConsumerSettings {
		if !covered[s.Key] {
			t.Errorf("%s is not tested", s.Key)
		}
	}
}

func checkUnwanted(t *testing.T, b *bus.Bus, c unwanted) {
	t.Helper()
	js, spec := b.JetStream(), listener.Spec{Name: "test", Start: listener.StartAll()}
	if err := js.DeleteConsumer(t.Context(), c.stream, "test"); err != nil &&
		!errors.Is(err, jetstream.ErrConsumerNotFound) {
		t.Fatal(err)
	}
	setup(t, b, spec, false)
	consumer, err := js.Consumer(t.Context(), c.stream, "test")
	if err != nil {
		t.Fatal(err)
	}
	config := consumer.CachedInfo().Config
	if err := js.DeleteConsumer(t.Context(), c.stream, "test"); err != nil {
		t.Fatal(err)
	}
	c.change(&config)
	if config.DeliverSubject != "" {
		config.MaxWaiting = 0
		_, err = js.CreatePushConsumer(t.Context(), c.stream, config)
	} else {
		_, err = js.CreateConsumer(t.Context(), c.stream, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	drifted, updated, after := bus.Drifted, bus.Updated, bus.InSync
	if c.recreate {
		drifted, updated, after = bus.Recreate, bus.Recreate, bus.Recreate
	}
	for _, step := range []struct {
		check bool
		want  bus.State
	}{{true, drifted}, {true, drifted}, {false, updated}, {true, after}, {false, after}} {
		d := diffOf(t, b, spec, c.stream, step.check)
		if d.State != step.want {
			t.Fatalf("with check %v it is %s (%s), want %s", step.check, d.State, d.Detail, step.want)
		}
		if d.State == bus.InSync {
			continue
		}
		if !slices.Contains(d.Keys, c.key) ||
			step.check && !strings.Contains(strings.Join(d.Shortcomings(), "\n"), "has another "+c.key) {
			t.Errorf("the %s is not among %q: %q", c.key, d.Keys, d.Shortcomings())
		}
		if recreate := strings.Join(d.Commands, "\n"); (d.State == bus.Recreate) != strings.Contains(recreate,
			"nats consumer rm "+c.stream+" test") {
			t.Errorf("it is %s, with the commands %q", d.State, recreate)
		}
	}
	if err := js.DeleteConsumer(t.Context(), c.stream, "test"); err != nil { // as its commands say
		t.Fatal(err)
	}
	if d := diffOf(t, b, spec, c.stream, false); d.State != bus.Created {
		t.Errorf("recreated it is %s: %s", d.State, d.Detail)
	}
	if d := diffOf(t, b, spec, c.stream, true); d.NeedsSetup() {
		t.Errorf("in the end it is %s: %s", d.State, d.Detail)
	}
}

func diffOf(t *testing.T, b *bus.Bus, spec listener.Spec, stream string, check bool) bus.Diff {
	t.Helper()
	all, err := listener.Setup(t.Context(), b, spec, check)
	if err != nil {
		t.Fatal(err)
	}
	return all[slices.IndexFunc(all, func(d bus.Diff) bool { return strings.HasSuffix(d.What, " of stream "+stream) })]
}

// What creates a consumer anew continues where the one that is behind was: a reset moves all partitions.
func TestAConsumerIsCreatedAnewAtItsPosition(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 100)
	spec := listener.Spec{Name: "test", Ordered: true, Start: listener.StartAll()}
	setup(t, b, spec, false)
	c, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "test-3")
	if err != nil {
		t.Fatal(err)
	}
	broken := c.CachedInfo().Config
	if err := b.JetStream().DeleteConsumer(t.Context(), bus.StreamEvents, "test-3"); err != nil {
		t.Fatal(err)
	}
	broken.AckPolicy, broken.DeliverPolicy, broken.OptStartSeq = jetstream.AckAllPolicy,
		jetstream.DeliverByStartSequencePolicy, 50
	if _, err := b.JetStream().CreateConsumer(t.Context(), bus.StreamEvents, broken); err != nil {
		t.Fatal(err)
	}
	found, err := listener.Setup(t.Context(), b, spec, false)
	if err != nil {
		t.Fatal(err)
	}
	d := found[slices.IndexFunc(found, func(d bus.Diff) bool { return strings.Contains(d.What, "test-3 ") })]
	if d.State != bus.Recreate || d.Commands[len(d.Commands)-1] != "belfry listener reset test --from 1" {
		t.Errorf("it is %s, with the commands %q", d.State, d.Commands)
	}
}

// A setup resumes what somebody has paused, and leaves a listener that pauses a partition of its own for a retry alone.
func TestAPausedConsumerIsReportedAndResumed(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, spec := range []listener.Spec{{Name: "test"}, {Name: "ordered", Ordered: true, AckWait: time.Minute}} {
		setup(t, b, spec, false)
		consumer := spec.Name
		if spec.Ordered {
			consumer += "-7"
			pause(t, b, consumer, 2*spec.AckWait)
			if got := setup(t, b, spec, false); got[bus.InSync] != 33 || !paused(t, b, consumer) {
				t.Errorf("a pause of its own: %v", got)
			}
		}
		pause(t, b, consumer, time.Hour)
		found, err := listener.Setup(t.Context(), b, spec, true)
		if err != nil {
			t.Fatal(err)
		}
		var says []string
		for _, d := range found {
			says = append(says, d.Shortcomings()...)
		}
		if len(says) != 1 || !strings.Contains(says[0], "consumer "+consumer+" of stream EVENTS") ||
			!strings.Contains(says[0], "is paused") || !paused(t, b, consumer) {
			t.Errorf("a check of a paused consumer: %q", says)
		}
		if got := setup(t, b, spec, false); got[bus.Updated] != 1 || paused(t, b, consumer) {
			t.Errorf("a setup of a paused consumer: %v", got)
		}
		if got := setup(t, b, spec, true); got[bus.Updated]+got[bus.Drifted] != 0 {
			t.Errorf("in the end: %v", got)
		}
	}
}

func pause(t *testing.T, b *bus.Bus, consumer string, length time.Duration) {
	t.Helper()
	if _, err := b.JetStream().PauseConsumer(t.Context(), bus.StreamEvents, consumer,
		time.Now().Add(length)); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "it is paused", func() bool { return paused(t, b, consumer) })
}

func paused(t *testing.T, b *bus.Bus, consumer string) bool {
	t.Helper()
	c, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, consumer)
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo().Paused
}

// With a consumer that counts events as handled that are not, a listener waits, and says what to do.
func TestAListenerWaitsForAConsumerThatMustBeCreatedAnew(t *testing.T) {
	t.Parallel()
	b := open(t)
	publish(t, b, 0, 3)
	config := jetstream.ConsumerConfig{Durable: "test", AckPolicy: jetstream.AckNonePolicy,
		FilterSubjects: []string{"events.*.Store.>"}}
	if _, err := b.JetStream().CreateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
		t.Fatal(err)
	}
	lacks := make(chan error, 10_000)
	handled := make(chan string, 100)
	run(t, b, listener.Spec{
		Name: "test", Start: listener.StartAll(),
		OnSetupError: func(consumer string, err error) {
			if consumer == "EVENTS.test" {
				lacks <- err
			}
		},
		Handler: func(_ context.Context, e *listener.Event) error { handled <- e.UUID; return nil },
	})
	for range 2 {
		if err := settled(lacks); !errors.Is(err, errs.Unavailable) ||
			!strings.Contains(err.Error(), "ack_policy AckNone instead of AckExplicit") ||
			!strings.Contains(err.Error(), "must be recreated: `belfry bus setup --check --listener test`") {
			t.Fatalf("it says %v", err)
		}
	}
	if len(handled) > 0 {
		t.Error("it handles events that count as handled before")
	}
	if err := b.JetStream().DeleteConsumer(t.Context(), bus.StreamEvents, "test"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-handled
	}
}

// settled returns the next result of a setup that the bus has answered. On a loaded machine it may do so too late.
func settled(results <-chan error) error {
	for err := range results {
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return nil
}

// Who pauses a listener may do so for longer than its processes run.
func TestAListenerThatStartsStaysPaused(t *testing.T) {
	t.Parallel()
	b := open(t)
	spec := listener.Spec{Name: "test", Start: listener.StartAll()}
	setup(t, b, spec, false)
	pause(t, b, "test", time.Hour)
	// run narrows its filter, which is an update.
	started := make(chan error, 10_000)
	spec.OnSetupError = func(consumer string, err error) {
		if consumer == "EVENTS.test" {
			started <- err
		}
	}
	spec.Handler = func(context.Context, *listener.Event) error { return nil }
	run(t, b, spec)
	if err := settled(started); err != nil || !paused(t, b, "test") {
		t.Errorf("it is paused: %v, after %v", paused(t, b, "test"), err)
	}
}

// eventfulBus calls a function before a consumer is created or updated, once the server has looked for it: it then
// updates one that has been created, also to no pause.
type eventfulBus struct {
	listener.Bus
	before func(stream, consumer string)
}

func (b eventfulBus) JetStream() jetstream.JetStream {
	return eventfulJetStream{b.Bus.JetStream(), b.before}
}

type eventfulJetStream struct {
	jetstream.JetStream
	before func(stream, consumer string)
}

func (js eventfulJetStream) CreateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	js.before(stream, c.Durable)
	return js.JetStream.CreateConsumer(ctx, stream, c)
}

func (js eventfulJetStream) CreateOrUpdateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	js.before(stream, c.Durable)
	updated, err := js.JetStream.CreateOrUpdateConsumer(ctx, stream, c)
	if err == nil && c.PauseUntil == nil {
		_, err = js.ResumeConsumer(ctx, stream, c.Durable)
	}
	return updated, err
}

// A worker finds no consumer. Before it creates one, another process does so, and somebody pauses it.
func TestACreationDoesNotUndoAPause(t *testing.T) {
	t.Parallel()
	for consumer, ordered := range map[string]bool{"test": false, "test-7": true} {
		for what, filters := range map[string][]string{"of the same configuration": nil,
			"of another one": {"events.*.Store.Saved.Books.*"}} {
			t.Run(consumer+" "+what, func(t *testing.T) {
				t.Parallel()
				b := open(t)
				spec := listener.Spec{Name: "test", Start: listener.StartAll(), Ordered: ordered}
				created := spec
				created.Filters = filters
				var once sync.Once
				between := func(stream, name string) {
					if stream != bus.StreamEvents || name != consumer {
						return
					}
					once.Do(func() {
						setup(t, b, created, false)
						pause(t, b, consumer, time.Hour)
					})
				}
				started := make(chan error, 10_000)
				spec.OnSetupError = func(name string, err error) {
					if name == "EVENTS."+consumer {
						started <- err
					}
				}
				spec.Handler = func(context.Context, *listener.Event) error { return nil }
				run(t, eventfulBus{b, between}, spec)
				if err := settled(started); err != nil || !paused(t, b, consumer) {
					t.Errorf("it is paused: %v, after %v", paused(t, b, consumer), err)
				}
			})
		}
	}
}
