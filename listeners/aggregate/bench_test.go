package aggregate_test

import (
	"fmt"
	"sync"
	"testing"

	"belfry/listeners/aggregate"
	"belfry/pkg/event"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/test/model"
)

// BenchmarkEvents handles events of new objects of one target on files, as many at once as the listener does.
func BenchmarkEvents(b *testing.B) {
	for _, atOnce := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(atOnce), func(b *testing.B) { benchEvents(b, atOnce) })
	}
}

func benchEvents(b *testing.B, atOnce int) {
	files, err := filestore.Open(b.TempDir(), filestore.Options{CacheBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = files.Close() })
	m := best(ratings())
	set, err := model.OpenSet(b.Context(), files, m, nil)
	if err != nil {
		b.Fatal(err)
	}
	save := func(name, uuid, text string) store.Stored {
		o, err := encoded.Parse([]byte(text))
		var saved store.Stored
		if err == nil {
			saved, err = set.Store(name).Save(b.Context(), o, uuid)
		}
		if err != nil {
			b.Error(err)
		}
		return saved
	}
	save("Recipes", "a", `{}`)
	w := aggregate.NewWorker(set, aggregate.Options{})
	b.Cleanup(w.Close)
	events := make(chan *event.Envelope)
	var saving sync.WaitGroup
	n := b.N
	saved := make([]*event.Envelope, n)
	slots := make(chan struct{}, 64)
	for i := range n {
		slots <- struct{}{}
		saving.Go(func() {
			x := save("Ratings", fmt.Sprintf("x%08d", i), `{"recipe":"a","stars":3}`)
			saved[i] = &event.Envelope{Event: event.StoreSaved, Store: "Ratings", UUID: x.UUID, Object: x.Body}
			<-slots
		})
	}
	saving.Wait()
	b.ReportAllocs()
	b.ResetTimer()
	var handling sync.WaitGroup
	for range atOnce {
		handling.Go(func() {
			for e := range events {
				if err := w.Handle(b.Context(), e); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for _, e := range saved {
		events <- e
	}
	close(events)
	handling.Wait()
}
