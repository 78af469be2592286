package fill

import (
	"encoding/json"
	"testing"
	"time"
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
