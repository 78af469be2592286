package views

import (
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/listener/replay"
)

func TestTheStatesOfListenersAreKeptForAnHour(t *testing.T) {
	w := &consoleWorkers{samples: map[string][]console.Sample{}}
	now := time.Now()
	for i := range 300 {
		all := []*replay.Listener{{Name: "mapping", Lag: uint64(i), Unacked: -1}}
		if i < 10 {
			all = append(all, &replay.Listener{Name: "gone"})
		}
		w.add(now.Add(time.Duration(i)*sampleInterval), all)
	}
	got := w.History("mapping")
	if len(got) != 241 || got[0].Lag != 59 || got[240].Lag != 299 || got[0].Unacked != 0 {
		t.Errorf("%d samples, from %+v", len(got), got[0])
	}
	if w.History("gone") != nil {
		t.Error("a listener without samples is remembered")
	}
	many := make([]*replay.Listener, 1000)
	for i := range many {
		many[i] = &replay.Listener{Name: string(rune('a' + i))}
	}
	w.add(now.Add(time.Hour), many)
	if len(w.samples) > maxSampled+1 {
		t.Errorf("%d listeners are remembered", len(w.samples))
	}
}
