package fill

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"belfry/pkg/walk"
)

// releasedLease is the lease of the state, as the last release reads and writes it.
type releasedLease struct {
	Lease *struct {
		Process string `json:"process"`
		Beat    uint64 `json:"beat"`
	} `json:"lease,omitempty"`
}

func TestTheLeaseOfTheLastReleaseIsRead(t *testing.T) {
	for text, holder := range map[string]string{
		`{"mappings":{},"lease":{"process":"p","beat":3}}`: "p",
		`{"mappings":{},"lease":{"process":"p","beat":0}}`: "p",
		`{"mappings":{},"lease":null}`:                     "",
		`{"mappings":{}}`:                                  "",
		`{}`:                                               "",
	} {
		var s state
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(text, err)
		}
		now := time.Unix(0, 0)
		w := &watcher{gone: time.Minute, now: func() time.Time { return now }, seen: map[string]beat{}}
		if held := s.lease(w).Held(now); s.Lease.Process != holder || held != (holder != "") {
			t.Errorf("%s: held by %q: %v", text, s.Lease.Process, held)
		}
		if claimed := s.lease(w).Claim("other", now); claimed == (holder != "") {
			t.Errorf("%s: claimed: %v", text, claimed)
		}
		now = now.Add(time.Minute)
		if !s.lease(w).Claim("other", now) {
			t.Errorf("%s: not claimed after its process counts as gone", text)
		}
	}
}

func TestTheLastReleaseReadsTheLease(t *testing.T) {
	now := time.Unix(0, 0)
	w := &watcher{gone: time.Minute, now: func() time.Time { return now }, seen: map[string]beat{}}
	var s state
	read := func() (r releasedLease) {
		t.Helper()
		data, err := json.Marshal(&s)
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := read(); r.Lease != nil {
		t.Errorf("a lease that nobody has: %+v", r.Lease)
	}
	s.lease(w).Claim("p", now)
	before := read()
	if before.Lease == nil || before.Lease.Process != "p" {
		t.Fatalf("a lease that is claimed: %+v", before.Lease)
	}
	if s.lease(w).Renew("p", now); read().Lease.Beat <= before.Lease.Beat {
		t.Error("a renewal is not counted")
	}
	if s.lease(w).Release("p"); read().Lease != nil {
		t.Errorf("a lease that was released: %+v", read().Lease)
	}
}

// releasedFill is a fill in progress, as the last release reads and writes it.
type releasedFill struct {
	Definition string    `json:"definition"`
	Began      time.Time `json:"began"`
	Cursor     []byte    `json:"cursor,omitempty"`
	Total      int64     `json:"total"`
	releasedCounts
	Before releasedCounts `json:"before,omitzero"`
}

type releasedCounts struct {
	Targets int64 `json:"targets"`
	Objects int64 `json:"objects"`
	Failed  int64 `json:"failed,omitempty"`
}

// A fill that the last release has begun is continued by this one, and the other way round.
func TestAFillOfTheLastReleaseIsContinued(t *testing.T) {
	released := releasedFill{"d", time.Unix(5, 0).UTC(), []byte("a"), 9, releasedCounts{4, 8, 1},
		releasedCounts{3, 6, 0}}
	data, err := json.Marshal(released)
	if err != nil {
		t.Fatal(err)
	}
	var p progress
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	want := walk.Progress{Began: released.Began, Cursor: []byte("a"), Total: 9,
		Counts: walk.Counts{Done: 4, Read: 8, Failed: 1}, Before: walk.Counts{Done: 3, Read: 6}}
	if p.Definition != "d" || !reflect.DeepEqual(p.Progress, want) {
		t.Errorf("read as %+v", p)
	}
	again, err := json.Marshal(p)
	if err != nil || string(again) != string(data) {
		t.Errorf("%s is stored as %s, %v", data, again, err)
	}
}
