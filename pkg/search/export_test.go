package search

import (
	"encoding/json"
	"testing"

	"github.com/blevesearch/bleve/v2"

	"belfry/pkg/bus/eventlog"
)

// FollowFrom has the index in a folder follow a log from its end on, as if it had just been built.
func FollowFrom(t *testing.T, folder string, log eventlog.State) {
	t.Helper()
	index, err := bleve.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	data, err := index.GetInternal(stateKey)
	if err != nil {
		t.Fatal(err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	s.position = position{Log: log.Created, Sequence: log.Last}
	if data, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	storeState(t, index, data)
	if err := index.Close(); err != nil {
		t.Fatal(err)
	}
}

// Scored returns how many documents were scored by searches of what a caller may list.
func (s *Service) Scored() (n int64) {
	for _, x := range s.all() {
		if current := x.current.Load(); current != nil {
			n += current.scored.Load()
		}
	}
	return n
}

// WriteEach has builds write each page, and so store their place.
func WriteEach(t *testing.T) {
	t.Helper()
	before := maxBatch
	maxBatch = 1
	t.Cleanup(func() { maxBatch = before })
}

// BuildDone returns after how many objects the place of an unfinished index is; 0 if there is none.
func BuildDone(folder string) int64 {
	x, of, ok := openUnfinished(folder, Settings{Fields: []string{"title", "n"}})
	if ok {
		_ = x.bleve.Close()
	}
	return of.Walk.Done
}

// BuildFromAnotherEvent has an unfinished index be one that began when the log had another event at its end.
func BuildFromAnotherEvent(t *testing.T, folder string) {
	t.Helper()
	x, of, ok := openUnfinished(folder, Settings{Fields: []string{"title"}})
	if !ok {
		t.Fatal("there is no unfinished index")
	}
	if of.Mark == 0 {
		t.Error("the event is not known")
	}
	of.Mark++
	onDisk, b := make(chan struct{}), x.batch()
	if err := b.place(of.position, of.Walk); err != nil {
		t.Fatal(err)
	}
	b.batch.SetPersistedCallback(func(error) { close(onDisk) })
	if err := x.bleve.Batch(b.batch); err != nil {
		t.Fatal(err)
	}
	<-onDisk
	if err := x.bleve.Close(); err != nil {
		t.Fatal(err)
	}
}

// Closing reports whether Close has begun.
func (s *Service) Closing() bool { return s.ctx.Err() != nil }
