package command

import (
	"testing"
	"time"

	"belfry/pkg/store"
)

// The record of a run that the last release has stored, which reads the same names and types.
func TestTheRunOfTheLastReleaseIsReadAndWritten(t *testing.T) {
	written := time.Date(2026, 11, 23, 3, 1, 0, 0, time.UTC)
	const began = `{"id":"r","by":"ada","request":"q","began":"2026-11-23T03:00:00Z",`
	for text, held := range map[string]bool{
		`{"_run":` + began + `"written":"2026-11-23T03:01:00Z","state":5}}`:                                true,
		`{"_run":` + began + `"ended":"2026-11-23T03:01:00Z","written":"2026-11-23T03:01:00Z","state":5}}`: false,
		`{"_run":null}`: false,
		`{}`:            false,
	} {
		s, err := readRun(store.Stored{Body: []byte(text)})
		if err != nil {
			t.Fatal(text, err)
		}
		if got := s.lease().Held(written.Add(runSilence - 1)); got != held {
			t.Errorf("%s: runs: %v", text, got)
		}
		if s.lease().Held(written.Add(runSilence)) {
			t.Errorf("%s: runs after a silence", text)
		}
		if s.ID == "" {
			continue
		}
		m, err := s.mutation()
		if again := `{"_run":` + string(m.Fields[runField]) + `}`; err != nil || again != text {
			t.Errorf("written as %s, %v", again, err)
		}
	}
}
