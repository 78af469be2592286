package missed

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/store"
	"belfry/test/model"
)

var (
	start = time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	log1  = start.Add(-time.Hour)
	log2  = start.Add(time.Hour)
)

// at is an observation so many minutes after start.
func at(minutes int, log time.Time, first, last uint64, consumers map[string]consumer) observation {
	return observation{at: start.Add(time.Duration(minutes) * time.Minute), log: log, first: first, last: last,
		consumers: consumers}
}

// lacking is an observation of a log without some of its events.
func lacking(o observation, sequences ...uint64) observation {
	o.holes, o.removed = len(sequences), sequences
	return o
}

// one is the consumer "x" alone.
func one(floor, pending uint64) map[string]consumer {
	return map[string]consumer{"x": {floor: floor, pending: pending}}
}

func TestWhatAListenerMissesIsNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		then []observation
		want *Missed // nil: nothing
	}{
		"nothing": {
			then: []observation{at(0, log1, 1, 10, one(10, 0)), at(1, log1, 1, 20, one(15, 5)),
				at(2, log1, 16, 30, one(30, 0))},
		},
		"the log is new": {
			then: []observation{at(0, log1, 1, 0, nil), at(1, log1, 1, 5, one(0, 5))},
		},
		"a listener that starts with the log's oldest event, which is not the first": {
			then: []observation{at(0, log1, 500, 600, nil), at(1, log1, 500, 600, one(499, 101)),
				at(2, log1, 500, 600, one(600, 0))},
		},
		"a listener whose events are rare, in a log that moves on": {
			then: []observation{
				at(0, log1, 1, 100, one(7, 0)), at(1, log1, 1, 200, one(7, 0)), at(2, log1, 50, 300, one(7, 0)),
				at(3, log1, 150, 400, one(7, 0)), at(4, log1, 250, 500, one(7, 0)),
			},
		},
		"the log removes events while the listener is away": {
			then: []observation{at(0, log1, 1, 100, one(100, 0)), at(1, log1, 1, 150, one(100, 50)),
				at(2, log1, 131, 200, one(100, 70))},
			want: &Missed{Reason: Expired, Events: 30, Since: start, Until: start.Add(2 * time.Minute)},
		},
		"not all of the events that the log removed were for the listener": {
			then: []observation{at(0, log1, 1, 100, one(50, 3)), at(1, log1, 91, 100, one(50, 1))},
			want: &Missed{Reason: Expired, Events: 3, Since: log1, Until: start.Add(time.Minute)},
		},
		"somebody removes events that are not handled yet": {
			then: []observation{at(0, log1, 1, 100, one(40, 60)),
				lacking(at(1, log1, 1, 100, one(100, 0)), 30, 41, 99)},
			want: &Missed{Reason: Removed, Events: 2, Since: log1, Until: start.Add(time.Minute)},
		},
		"somebody removes events that were handled": {
			then: []observation{at(0, log1, 1, 100, one(100, 0)), lacking(at(1, log1, 1, 100, one(100, 0)), 30, 41, 99),
				lacking(at(2, log1, 1, 120, one(120, 0)), 30, 41, 99)},
		},
		"events were removed before anybody looked": {
			then: []observation{lacking(at(0, log1, 1, 100, one(40, 60)), 50, 60), at(1, log1, 1, 100, one(100, 0))},
		},
		"events came and went between two reads": {
			then: []observation{at(0, log1, 1, 100, one(98, 2)), at(1, log1, 151, 200, one(98, 50))},
			want: &Missed{Reason: Expired, Events: 52, Since: log1, Until: start.Add(time.Minute)},
		},
		"the server has raised the floor because an unacknowledged event left the log": {
			then: []observation{at(0, log1, 1, 100, one(40, 1)), at(1, log1, 60, 120, one(120, 0))},
			want: &Missed{Reason: Expired, Events: 1, Since: log1, Until: start.Add(time.Minute)},
		},
		"an event that was not yet counted as pending when it was in the log": {
			then: []observation{at(0, log1, 1, 9, one(9, 0)), at(1, log1, 1, 10, one(9, 0)),
				at(2, log1, 1, 10, one(9, 1)), at(3, log1, 11, 10, one(10, 0))},
			want: &Missed{Reason: Expired, Events: 1, Since: start.Add(time.Minute), Until: start.Add(3 * time.Minute)},
		},
		"the log is another one": {
			then: []observation{at(0, log1, 1, 100, one(100, 0)), at(1, log1, 1, 104, one(100, 4)),
				at(2, log2, 1, 3, nil)},
			want: &Missed{Reason: Replaced, Events: 4, AtLeast: true, Since: start, Until: start.Add(2 * time.Minute)},
		},
		"the log is another one, and longer than the one before": {
			then: []observation{at(0, log1, 1, 100, one(100, 0)), at(1, log2, 1, 900, one(900, 0))},
			want: &Missed{Reason: Replaced, AtLeast: true, Since: start, Until: start.Add(time.Minute)},
		},
		"the log is an old copy of itself": {
			then: []observation{at(0, log1, 1, 100, one(100, 0)), at(1, log1, 1, 60, one(60, 0))},
			want: &Missed{Reason: Truncated, AtLeast: true, Since: start, Until: start.Add(time.Minute)},
		},
		"the log is an old copy of itself, and has got more events than it had": {
			then: []observation{at(0, log1, 1, 100, one(100, 0)), other(at(1, log1, 1, 160, one(160, 0)))},
			want: &Missed{Reason: Truncated, AtLeast: true, Since: start, Until: start.Add(time.Minute)},
		},
		"two losses are added": {
			then: []observation{
				at(0, log1, 1, 100, one(90, 10)), at(1, log1, 96, 100, one(90, 5)),
				at(2, log1, 96, 100, one(95, 5)), at(3, log2, 1, 1, one(0, 1)),
			},
			want: &Missed{Reason: Replaced, Events: 10, AtLeast: true, Since: log1, Until: start.Add(3 * time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s state
			noticed := 0
			for _, o := range test.then {
				noticed += len(s.observe(o))
			}
			got := s.Consumers["x"].Missed
			if test.want == nil {
				if got != nil || noticed > 0 {
					t.Errorf("missed %+v, noticed %d times", got, noticed)
				}
				return
			}
			if got == nil || *got != *test.want || noticed == 0 {
				t.Errorf("missed %+v, noticed %d times, want %+v", got, noticed, test.want)
			}
			// It is noticed once.
			last := test.then[len(test.then)-1]
			last.others = false
			if again := s.observe(last); len(again) > 0 {
				t.Errorf("noticed again: %+v", s.Consumers["x"].Missed)
			}
		})
	}
}

// other is an observation of a log whose event at the sequence that was the last is another one.
func other(o observation) observation {
	o.others = true
	return o
}

// Several processes compare, each soon after another one: what is in the log counts as settled all the same, and not
// earlier.
func TestTheLogSettlesWhileManyProcessesCompareIt(t *testing.T) {
	var s state
	for i := range 40 {
		o := at(0, log1, 1, uint64(i), one(0, 0))
		o.at = o.at.Add(time.Duration(i) * 100 * time.Millisecond)
		s.observe(o)
		second := i * 100 / int(settle.Milliseconds())
		if want := uint64(max(0, second-1) * int(settle.Milliseconds()) / 100); s.Consumers["x"].Done != want {
			t.Errorf("event %d: done up to %d, want %d", i, s.Consumers["x"].Done, want)
		}
	}
}

func TestAConsumerThatIsDeletedIsForgottenAfterADay(t *testing.T) {
	var s state
	s.observe(at(0, log1, 1, 10, one(10, 0)))
	s.observe(at(1, log1, 50, 60, nil))
	if p := s.Consumers["x"]; p == nil || p.Missed != nil {
		t.Fatalf("after a minute: %+v", p)
	}
	s.observe(at(25*60, log1, 50, 60, nil))
	if p := s.Consumers["x"]; p != nil {
		t.Errorf("after a day: %+v", p)
	}
}

// Where the permission to list all consumers is missing, those that are not read stay.
func TestConsumersThatCannotBeReadAreKept(t *testing.T) {
	var s state
	s.observe(at(0, log1, 1, 10, map[string]consumer{"x": {10, 0}, "y": {10, 0}}))
	o := at(1, log1, 1, 20, one(20, 0))
	o.partial = true
	s.observe(o)
	if p := s.Consumers["y"]; p == nil || !p.Gone.IsZero() || p.Done != 10 {
		t.Errorf("%+v", p)
	}
}

func TestOneProcessRepairsAtATime(t *testing.T) {
	var s state
	s.observe(at(0, log1, 1, 10, one(10, 0)))
	if s.claim("a", []string{"x"}, start) {
		t.Error("a repair began without a loss")
	}
	s.observe(at(1, log2, 1, 1, nil))
	now := start.Add(time.Minute)
	if s.claim("a", []string{"y"}, now) {
		t.Error("a repair began for a consumer that has missed nothing")
	}
	if !s.claim("a", []string{"x"}, now) || s.claim("b", []string{"x"}, now.Add(leaseTime-1)) {
		t.Error("not one process alone repairs")
	}
	if !s.lease().Renew("a", now.Add(leaseTime-1)) || s.lease().Renew("b", now) ||
		s.claim("b", []string{"x"}, now.Add(leaseTime+1)) {
		t.Error("a process that renews its lease does not keep it")
	}
	if !s.claim("b", []string{"x"}, now.Add(2*leaseTime)) {
		t.Error("the lease of a process that died does not end")
	}
}

// What is noticed while a repair runs needs another: the repair may have read the objects before.
func TestARepairCoversWhatWasNoticedBeforeItBegan(t *testing.T) {
	var s state
	s.observe(at(0, log1, 1, 10, map[string]consumer{"x": {10, 0}, "y": {10, 0}}))
	s.observe(at(1, log2, 1, 1, nil))
	s.repaired([]string{"x"}, start, start.Add(5*time.Minute))
	if !s.open([]string{"x"}) {
		t.Error("a repair that began before the loss counts")
	}
	s.repaired([]string{"x"}, start.Add(2*time.Minute), start.Add(5*time.Minute))
	if s.open([]string{"x"}) || !s.open([]string{"y"}) {
		t.Errorf("x: %+v, y: %+v", s.Consumers["x"].Missed, s.Consumers["y"].Missed)
	}
}

func TestALeaderThatIsCutOffIsNotBelieved(t *testing.T) {
	near, far := &jetstream.PeerInfo{Active: time.Second}, &jetstream.PeerInfo{Active: 5 * time.Second}
	off := &jetstream.PeerInfo{Active: time.Second, Offline: true}
	for name, c := range map[string]struct {
		cluster *jetstream.ClusterInfo
		leads   bool
	}{
		"no cluster":             {nil, true},
		"no replica":             {&jetstream.ClusterInfo{}, true},
		"both are reached":       {&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{near, near}}, true},
		"one of two is reached":  {&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{far, near}}, true},
		"none of two is reached": {&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{far, off}}, false},
		"one of four is reached": {&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{far, near, far, far}},
			false},
		"two of four are reached": {&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{far, near, near, far}},
			true},
	} {
		if got := leads(c.cluster); got != c.leads {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A restore replaces the log by another one with other sequences. Nothing counts as missed, and what was missed before
// stays.
func TestAfterARestoreNothingCountsAsMissed(t *testing.T) {
	s, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: "LogPositions", NoEvents: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := Restored(t.Context(), s, nil); err != nil {
		t.Errorf("nothing is remembered: %v", err)
	}
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := state{Log: created, Last: 1000, Read: created, Consumers: map[string]*position{
		"handled": {Done: 1000}, "behind": {Done: 900, Pending: 100},
		"open": {Done: 10, Missed: &Missed{Reason: Expired, Events: 7}}, "deleted": {Done: 5},
	}}
	if _, err := shared(s).Put(t.Context(), before, 0); err != nil {
		t.Fatal(err)
	}
	if err := Restored(t.Context(), s, map[string]uint64{"handled": 51, "behind": 11, "open": 1}); err != nil {
		t.Fatal(err)
	}
	after, _, err := shared(s).Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := after.observe(observation{at: created.Add(time.Hour), log: created.Add(time.Hour), first: 1, last: 50,
		consumers: map[string]consumer{
			"handled": {floor: 50}, "behind": {floor: 10, pending: 40}, "open": {floor: 0, pending: 50},
		}})
	if len(found) > 0 {
		t.Errorf("missed: %v", found)
	}
	if p := after.Consumers["behind"]; p == nil || p.Done != 10 || p.Pending != 40 {
		t.Errorf("behind: %+v", p)
	}
	if p := after.Consumers["open"]; p == nil || !p.Missed.Open() || p.Missed.Events != 7 {
		t.Errorf("open: %+v", p)
	}
	if p := after.Consumers["deleted"]; p != nil {
		t.Errorf("deleted: %+v", p)
	}
}

// A process that takes a repair over is given the same loss, and each further loss is another one.
func TestALossIsIdentified(t *testing.T) {
	w, both := &Watch{}, []string{"x", "y"}
	w.current.observe(at(0, log1, 1, 10, map[string]consumer{"x": {10, 0}, "y": {10, 0}}))
	if loss := w.loss(both); loss != "" {
		t.Errorf("nothing was missed: %q", loss)
	}
	w.current.observe(at(1, log2, 1, 1, nil))
	first, other := w.loss(both), &Watch{current: *w.current.clone()}
	if first != "x until 2026-11-01T10:01:00Z, y until 2026-11-01T10:01:00Z" || other.loss(both) != first {
		t.Errorf("%q, in another process %q", first, other.loss(both))
	}
	w.current.repaired([]string{"y"}, start.Add(time.Hour), start.Add(time.Hour))
	if got := w.loss(both); got != w.loss([]string{"x"}) {
		t.Errorf("what is dealt with is a part of %q", got)
	}
	w.current.observe(at(2, log1, 1, 1, nil))
	if again := w.loss(both); again == first || again != "x until 2026-11-01T10:02:00Z, y until 2026-11-01T10:02:00Z" {
		t.Errorf("another loss is %q", again)
	}
}
