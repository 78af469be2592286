package bus_test

import (
	"fmt"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/event"
)

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1, 4, 8, 16, 32, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			busy := open(b, bus.Options{Events: bus.Limits{MaxMessages: 200_000}})
			list := events("e", n, 900)
			for round := 0; b.Loop(); round++ {
				for i := range list {
					list[i].ID = fmt.Sprintf("0199f3a1-0000-7000-8000-%d-%d", round, i)
				}
				if err := busy.Publish(b.Context(), list); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func BenchmarkHasInterest(b *testing.B) {
	busy := open(b, bus.Options{})
	for b.Loop() {
		if busy.HasInterest(event.StoreGet) {
			b.Fatal("there is interest without a subscriber")
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		busy := open(b, bus.Options{})
		if err := busy.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
