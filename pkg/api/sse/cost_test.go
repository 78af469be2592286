package sse_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/sse"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// slowNotes opens notes whose rule is slow on what a client put into them, and fast on others.
func slowNotes(t *testing.T) (w *fixture, slow string) {
	w = newFixture(t)
	w.opts.Registry = prometheus.NewRegistry()
	w.open("Books", nil)
	w.open("Notes", &policy.Rules{Get: "user != null && object.list.all(x, x != 'y')"})
	return w, `{"list":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 100), ",") + `]}`
}

// Objects on which the rule is slow hold up the streams of those who have used up what their rules may cost, and
// nobody else's.
func TestRulesOfAStreamMayCostOnlySoMuch(t *testing.T) {
	t.Parallel()
	w, slow := slowNotes(t)
	w.start()
	sse.LimitRuleCost(w.hub, 100) // and 1,000 at once, which two events cost
	const events = 60
	for i := range events {
		w.save("Notes", fmt.Sprint("n", i), slow)
	}
	for i := range events {
		w.save("Books", fmt.Sprint("b", i), `{}`)
	}
	costly := []*testClient{
		w.listen(sse.Subscription{After: "0"}, user("eve")),
		w.listen(sse.Subscription{After: "0", Stores: []string{"Notes"}}, user("eve")),
	}
	ann := w.listen(sse.Subscription{After: "0", Stores: []string{"Books"}}, user("ann"))
	kit.WaitUntil(t, func() error {
		if n := len(ann.received()); n < events {
			return fmt.Errorf("%d events", n)
		}
		return nil
	})
	received := 0
	kit.WaitUntil(t, func() error {
		if received = len(costly[0].received()) + len(costly[1].received()); received == 0 ||
			w.metric("belfry_live_rule_waits_total") == 0 {
			return errors.New("no stream has waited")
		}
		return nil
	})
	if received > events/2 {
		t.Errorf("%d events were decided for a user whose rules may cost no more", received)
	}
	// Nor does it help to connect again.
	for range 10 {
		c := w.listen(sse.Subscription{After: "0", Stores: []string{"Notes"}}, user("eve"))
		waits := w.metric("belfry_live_rule_waits_total")
		kit.WaitUntil(t, func() error {
			if w.metric("belfry_live_rule_waits_total") == waits && len(c.received()) == 0 {
				return errors.New("it neither waits nor receives")
			}
			return nil
		})
		c.leave()
		received += len(c.received())
	}
	if received > events/2 {
		t.Errorf("%d events were decided for a user who connects again and again", received)
	}
}

// Who has to wait for the rules receives every event in the end, in its order.
func TestAStreamThatWaitsForItsRulesLosesNoEvent(t *testing.T) {
	t.Parallel()
	// Ten times the limit may be used at once, which the events cost more than. While a busy machine evaluates the
	// rules, more may be used: then the limit is lower.
	for limit := 3500; !waitsForRules(t, limit); limit /= 4 {
		if limit == 0 {
			t.Fatal("the stream did not wait")
		}
	}
}

// waitsForRules checks that a stream receives every event where rules may cost only so much a second, and reports
// whether it had to wait.
func waitsForRules(t *testing.T, limit int) bool {
	t.Helper()
	w, slow := slowNotes(t)
	w.start(func(o *sse.Options) { o.Buffer = 2 << 10 }) // so that it also falls out of the window
	sse.LimitRuleCost(w.hub, limit)
	const events = 60
	var want []string
	for i := range events {
		w.save("Notes", fmt.Sprint("n", i), slow)
		want = append(want, fmt.Sprint("Store.Saved Notes n", i))
	}
	var got []string
	position := "0"
	kit.WaitUntil(t, func() error {
		c := w.listen(sse.Subscription{After: after(position)}, user("ann"))
		kit.WaitUntil(t, func() error {
			if n := len(c.received()); n < events-len(got) && !c.dropped() {
				return fmt.Errorf("%d events", n)
			}
			return nil
		})
		c.leave()
		for _, m := range c.received() {
			if m.event == "Store.Saved" {
				got = append(got, m.what())
			}
		}
		if position = c.lastID(); len(got) < events {
			return errors.New("not all")
		}
		return nil
	})
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	return w.metric("belfry_live_rule_waits_total") > 0
}

func (e *testClient) dropped() bool {
	for _, m := range e.received() {
		if m.event == "dropped" {
			return true
		}
	}
	return false
}

// metric is the value of a counter of the hub.
func (w *fixture) metric(name string) float64 {
	w.Helper()
	families, err := w.opts.Registry.Gather()
	w.must(err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	w.Fatalf("there is no metric %s", name)
	return 0
}
