package eventlog_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
)

func TestNewestReadsTheEventsOfAnObjectBackwards(t *testing.T) {
	b := open(t)
	newest := func(uuid string, before uint64, n int) (sequences []uint64, more bool) {
		t.Helper()
		all, more, err := eventlog.Newest(t.Context(), b.Conn(), b.JetStream(),
			eventlog.Object{Store: "Books", UUID: uuid}, eventlog.Changes(), before, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			sequences = append(sequences, e.Sequence)
		}
		return sequences, more
	}
	if got, more := newest("emma", 0, 10); len(got) > 0 || more {
		t.Errorf("an empty log has %v, %t", got, more)
	}
	// Events of emma are among those of others, many at the beginning and few at the end.
	var want []uint64
	for i := range 300 {
		uuid := fmt.Sprintf("other-%d", i)
		if i < 60 || i%50 == 0 {
			uuid = "emma"
			want = append(want, uint64(i+1))
		}
		name := event.StoreUpdated
		if i%7 == 0 {
			name = event.BinaryUploaded
		}
		publish(t, b, name, "Books", uuid)
	}
	publish(t, b, event.StoreSaved, "Authors", "emma")
	// Those about the security of an account are not among its changes, however many they are.
	var security []uint64
	for i := range 70 {
		security = append(security, uint64(302+i))
		publish(t, b, []event.Name{event.AuthLoggedIn, event.AuthLoginFailed}[i%2], "Books", "emma")
	}
	slices.Reverse(security)
	for _, n := range []int{1, 3, 20, 64, 100} {
		all, more, err := eventlog.Newest(t.Context(), b.Conn(), b.JetStream(),
			eventlog.Object{Store: "Books", UUID: "emma"}, event.Auth(), 0, n)
		if err != nil || more != (n < len(security)) || len(all) != min(n, len(security)) {
			t.Fatalf("%d at once: %d, %t, %v", n, len(all), more, err)
		}
		for i, e := range all {
			if e.Sequence != security[i] {
				t.Errorf("%d at once: %d. is %d, want %d", n, i, e.Sequence, security[i])
			}
		}
	}
	slices.Reverse(want)
	for _, n := range []int{1, 3, 7, 20, 64, 65, 1000} {
		got, before := []uint64{}, uint64(0)
		for more := true; more; {
			var page []uint64
			if page, more = newest("emma", before, n); len(page) == 0 || len(page) > n {
				t.Fatalf("%d at once: a page of %d", n, len(page))
			}
			got = append(got, page...)
			before = page[len(page)-1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d at once:\n%v, want\n%v", n, got, want)
		}
	}
	if got, more := newest("nobody", 0, 10); len(got) > 0 || more {
		t.Errorf("an object without events has %v, %t", got, more)
	}
}

// busyLog is a log to which events come right after its state was read.
type busyLog struct {
	jetstream.JetStream
	meanwhile func()
}

func (l busyLog) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := l.JetStream.Stream(ctx, name)
	l.meanwhile()
	return s, err
}

// A page is whole while more events of its object arrive than it has.
func TestNewestReadsALogToWhichEventsCome(t *testing.T) {
	b := open(t)
	written := 0
	write := func(n int) {
		for range n {
			publish(t, b, event.StoreUpdated, "Books", "emma")
		}
		written += n
	}
	write(50)
	for _, come := range []int{1, 10, 100} {
		last := uint64(written)
		log := busyLog{b.JetStream(), func() { write(come) }}
		page, more, err := eventlog.Newest(t.Context(), b.Conn(), log, eventlog.Object{Store: "Books", UUID: "emma"},
			eventlog.Changes(), 0, 21)
		if err != nil || len(page) != 21 || page[0].Sequence != last || !more {
			t.Errorf("while %d come, the page has %d events, more: %t, %v", come, len(page), more, err)
		}
	}
}
