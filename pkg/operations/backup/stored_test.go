package backup

import (
	"encoding/json"
	"testing"
	"time"
)

// stored is a state that the last release has stored, which reads the same names and types.
const storedState = `{"installation":"i","lease":{"id":"b","run":"r","host":"castle","data":"/data","began":"2026-11-23T03:00:00Z","renewed":"2026-11-23T03:01:00Z","scheduled":true}}`

func TestTheStateOfTheLastReleaseIsReadAndWritten(t *testing.T) {
	renewed := time.Date(2026, 11, 23, 3, 1, 0, 0, time.UTC)
	for text, held := range map[string]bool{storedState: true, `{"installation":"i","lease":null}`: false,
		`{"installation":"i"}`: false} {
		var s State
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if live := s.Live(renewed.Add(LeaseTime-1)) != nil; live != held {
			t.Errorf("%s: live: %v", text, live)
		}
		if s.Live(renewed.Add(LeaseTime)) != nil {
			t.Errorf("%s: live after its end", text)
		}
		if s.Lease == nil {
			continue
		}
		other := Holder{ID: "c", Run: "s", Host: "castle", Data: "/data"}
		if s.Lease.lease(other).Held(renewed) {
			t.Error("a process that has the data folder of another one waits for it")
		}
		if again, err := json.Marshal(&s); err != nil || string(again) != text {
			t.Errorf("written as %s, %v", again, err)
		}
	}
}
