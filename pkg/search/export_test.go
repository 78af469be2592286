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
