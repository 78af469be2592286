package embedded

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/test/kit/natsserver"
)

// opened is an embedded bus with one event, closed with the test.
func opened(t *testing.T, folder string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{Server: New(Options{Folder: folder})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBus(t, b) })
	return b
}

func closeBus(t *testing.T, b *bus.Bus) {
	t.Helper()
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A power cut can leave the files of a consumer empty or cut off. Its listener must receive events again, and others
// must not lose their positions.
func TestADamagedConsumerIsCreatedAgain(t *testing.T) {
	for name, damage := range map[string]map[string][]byte{
		"no configuration, half a state": {"meta.inf": {}, "o.dat": {22, 1, 255, 255, 255, 255, 255, 255}},
		"no configuration":               {"meta.inf": {}},
		"half a state":                   {"o.dat": {22, 1, 255, 255, 255, 255, 255, 255}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			b := opened(t, folder)
			e := bus.Event{ID: "1", Subject: event.Subject(event.StoreSaved, "Books", "b"), Payload: []byte("{}")}
			natsserver.Publish(t, b, e)
			for _, consumer := range []string{"mapping", "other"} {
				receive(t, b, consumer, 1)
			}
			closeBus(t, b)
			folders, err := filepath.Glob(filepath.Join(folder, "jetstream", "*", "streams", bus.StreamEvents, "obs",
				"mapping"))
			if err != nil || len(folders) != 1 {
				t.Fatalf("folders of the consumer: %v, %v", folders, err)
			}
			for file, content := range damage {
				if err := os.WriteFile(filepath.Join(folders[0], file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b = opened(t, folder)
			receive(t, b, "mapping", 1)
			receive(t, b, "other", 0)
			names, err := consumerFolders(filepath.Join(folder, "jetstream"))
			if err != nil ||
				len(names) != 2 || !slices.ContainsFunc(names,
				func(c consumerFolder) bool { return c.consumer == "other" && c.stream == bus.StreamEvents }) {
				t.Errorf("folders of consumers: %v, %v", names, err)
			}
		})
	}
}

// receive creates a durable consumer, or uses it, and acknowledges the events that it delivers.
func receive(t *testing.T, b *bus.Bus, consumer string, events int) {
	t.Helper()
	c, err := b.JetStream().CreateOrUpdateConsumer(t.Context(), bus.StreamEvents,
		jetstream.ConsumerConfig{Durable: consumer, AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.FetchNoWait(10)
	if err != nil {
		t.Fatal(err)
	}
	received := 0
	for m := range page.Messages() {
		received++
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if received != events {
		t.Errorf("%s received %d events, expected %d", consumer, received, events)
	}
}
