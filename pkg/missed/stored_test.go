package missed

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTheRepairOfTheLastReleaseIsRead(t *testing.T) {
	const rest = `"log":"2026-11-01T09:00:00Z","last":10,"read":"2026-11-01T10:00:00Z","consumers":{"x":{"done":5,"pending":5,"drained":"2026-11-01T09:00:00Z",` +
		`"missed":{"reason":"replaced","events":5,"atLeast":true,"since":"2026-11-01T09:00:00Z","until":"2026-11-01T10:00:00Z"}}}}`
	for text, holder := range map[string]string{
		`{"repair":{"process":"p","began":"2026-11-01T10:00:00Z","renewed":"2026-11-01T10:01:00Z"},` + rest: "p",
		`{"repair":null,` + rest: "",
		`{` + rest:               "",
	} {
		var s state
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(text, err)
		}
		now := start.Add(time.Minute + leaseTime - 1)
		if held := s.lease().Held(now); s.Repair.Process != holder || held != (holder != "") {
			t.Errorf("held by %q: %v", s.Repair.Process, held)
		}
		if claimed := s.claim("other", []string{"x"}, now); claimed == (holder != "") {
			t.Errorf("held by %q, claimed: %v", holder, claimed)
		}
		if holder != "" && !s.claim("other", []string{"x"}, now.Add(1)) {
			t.Error("not claimed after its end")
		}
	}
}

func TestTheLastReleaseReadsTheRepair(t *testing.T) {
	var s state
	s.observe(at(0, log1, 1, 10, one(10, 0)))
	s.observe(at(1, log2, 1, 1, nil))
	read := func() (r struct {
		Repair *struct {
			Process        string
			Began, Renewed time.Time
		} `json:"repair,omitempty"`
	},
	) {
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
	if r := read().Repair; r != nil {
		t.Errorf("a lease that nobody has: %+v", r)
	}
	s.claim("p", []string{"x"}, start.Add(time.Minute))
	if s.lease().Renew("p", start.Add(2*time.Minute)); read().Repair == nil {
		t.Fatal("no lease")
	}
	if r := read().Repair; r.Process != "p" || !r.Began.Equal(start.Add(time.Minute)) ||
		!r.Renewed.Equal(start.Add(2*time.Minute)) {
		t.Errorf("%+v", r)
	}
	if s.release("p"); read().Repair != nil {
		t.Errorf("a lease that was released: %+v", read().Repair)
	}
}
