package listener_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
)

// Consumers of an earlier release and of programs in other languages have filters that select all events.
func TestConsumersAreNarrowed(t *testing.T) {
	t.Parallel()
	b := open(t)
	js := b.JetStream()
	narrow := []string{"events.*.Store.>", "events.*.Register.>", "events.*.Binary.>"}
	for name, c := range map[string]struct {
		filters []string
		push    bool
		want    []string
	}{
		"all":   {[]string{"events.>"}, false, narrow},
		"unset": {nil, false, narrow},
		"push":  {[]string{"events.>"}, true, narrow},
		"store": {[]string{"events.*.*.*.Books.*", "events.*.Register.Books.*"}, false,
			[]string{"events.*.Store.*.Books.*", "events.*.Binary.*.Books.*", "events.*.Register.Books.*"}},
		"security": {[]string{"events.*.Auth.>"}, false, []string{"events.*.Auth.>"}},
		"narrow":   {[]string{"events.*.Store.>"}, false, []string{"events.*.Store.>"}},
	} {
		config := jetstream.ConsumerConfig{Durable: name, AckPolicy: jetstream.AckExplicitPolicy,
			FilterSubjects: c.filters}
		var err error
		if c.push {
			config.DeliverSubject = "deliver"
			_, err = js.CreateOrUpdatePushConsumer(t.Context(), bus.StreamEvents, config)
		} else {
			_, err = js.CreateOrUpdateConsumer(t.Context(), bus.StreamEvents, config)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		before := filtersOf(t, b, name)
		if _, err := listener.NarrowConsumers(t.Context(), b, true); err != nil ||
			!slices.Equal(filtersOf(t, b, name), before) {
			t.Errorf("a check of %s: %v, it has %v", name, err, filtersOf(t, b, name))
		}
		found, err := listener.NarrowConsumers(t.Context(), b, false)
		if changed := !slices.Equal(before, c.want); err != nil || len(found) > 0 != changed {
			t.Errorf("%s: %v, %v", name, found, err)
		}
		if got := filtersOf(t, b, name); !slices.Equal(got, c.want) {
			t.Errorf("%s has %v, want %v", name, got, c.want)
		}
	}
	if found, err := listener.NarrowConsumers(t.Context(), b, true); len(found) > 0 || err != nil {
		t.Errorf("again: %v, %v", found, err)
	}
}

func filtersOf(t *testing.T, b *bus.Bus, consumer string) []string {
	t.Helper()
	s, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	for info := range s.ListConsumers(t.Context()).Info() {
		if info.Name == consumer {
			if info.Config.FilterSubject != "" {
				return []string{info.Config.FilterSubject}
			}
			return info.Config.FilterSubjects
		}
	}
	t.Fatal("no consumer " + consumer)
	return nil
}

// deleting deletes a consumer between the moments at which it is read and narrowed.
type deleting struct {
	*bus.Bus
	consumer string
}

func (d deleting) JetStream() jetstream.JetStream {
	return deletingStream{d.Bus.JetStream(), d.consumer}
}

type deletingStream struct {
	jetstream.JetStream
	consumer string
}

func (d deletingStream) UpdateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	_ = d.DeleteConsumer(ctx, stream, d.consumer)
	return d.JetStream.UpdateConsumer(ctx, stream, c)
}

func (d deletingStream) CreateOrUpdateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	_ = d.DeleteConsumer(ctx, stream, d.consumer)
	return d.JetStream.CreateOrUpdateConsumer(ctx, stream, c)
}

func TestANarrowedConsumerThatWasDeletedStaysDeleted(t *testing.T) {
	t.Parallel()
	b := open(t)
	config := jetstream.ConsumerConfig{Durable: "short", AckPolicy: jetstream.AckExplicitPolicy,
		FilterSubject: "events.>"}
	if _, err := b.JetStream().CreateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
		t.Fatal(err)
	}
	if found, err := listener.NarrowConsumers(t.Context(), deleting{b, "short"}, false); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, "short"); !errors.Is(err,
		jetstream.ErrConsumerNotFound) {
		t.Errorf("the consumer is there again: %v", err)
	}
}

// A consumer that exists keeps its position when its filter is narrowed.
func TestAListenerOfAnEarlierReleaseIsNarrowedWhereItIs(t *testing.T) {
	t.Parallel()
	b := open(t)
	happen(t, b, event.Envelope{ID: "one", Event: event.StoreSaved, Store: "Books", UUID: "b"})
	wide := jetstream.ConsumerConfig{Durable: "old", AckPolicy: jetstream.AckExplicitPolicy,
		FilterSubjects: []string{"events.>"}, MaxDeliver: -1}
	c, err := b.JetStream().CreateOrUpdateConsumer(t.Context(), bus.StreamEvents, wide)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Fatal(err)
	}
	happen(t, b,
		event.Envelope{ID: "in", Event: event.AuthLoggedIn, Store: "Users", UUID: "u"},
		event.Envelope{ID: "two", Event: event.StoreSaved, Store: "Books", UUID: "b"})
	var s seen
	stop := start(t,
		b, listener.Spec{Name: "old", Start: listener.StartAll(),
			Handler: func(_ context.Context, e *listener.Event) error { s.note(e); return nil }})
	kit.WaitFor(t, "all is handled", func() bool { return s.distinct() >= 1 && lag(t, b, "old") == 0 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := s.all(); !slices.Equal(got, []string{"two"}) {
		t.Errorf("handled %v, want what came after the position, without the login", got)
	}
}

// refusing refuses to change a consumer.
type refusing struct {
	*bus.Bus
	consumer string
	asked    *int
}

func (r refusing) JetStream() jetstream.JetStream {
	return refusingStream{r.Bus.JetStream(), r}
}

type refusingStream struct {
	jetstream.JetStream
	r refusing
}

var errRefused = errors.New("refused")

func (s refusingStream) UpdateConsumer(ctx context.Context, stream string,
	c jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	if c.Durable == s.r.consumer {
		*s.r.asked++
		return nil, errRefused
	}
	return s.JetStream.UpdateConsumer(ctx, stream, c)
}

// One consumer that can't be narrowed does not keep others wide, and is only compared where that is asked for.
func TestAConsumerThatCannotBeNarrowedKeepsNoOtherWide(t *testing.T) {
	t.Parallel()
	b := open(t)
	for _, name := range []string{"a", "b", "c"} {
		config := jetstream.ConsumerConfig{Durable: name, AckPolicy: jetstream.AckExplicitPolicy,
			FilterSubject: "events.>"}
		if _, err := b.JetStream().CreateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	found, err := listener.NarrowConsumers(t.Context(), refusing{b, "a", &asked}, false)
	if !errors.Is(err, errRefused) || len(found) != 3 || asked != 1 {
		t.Fatalf("found %v, %v, asked %d times", found, err, asked)
	}
	for _, name := range []string{"b", "c"} {
		if slices.Contains(filtersOf(t, b, name), "events.>") {
			t.Errorf("consumer %s is wide", name)
		}
	}
	found, err = listener.NarrowConsumers(t.Context(), refusing{b, "a", &asked}, false, "consumer a of stream EVENTS")
	if err != nil || len(found) != 1 || found[0].State != bus.Drifted || asked != 1 {
		t.Errorf("found %v, %v, asked %d times", found, err, asked)
	}
}
