package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// claims has a stranger claim once to be a member, which owns some targets. A second heartbeat could arrive after the
// member was given up, and make it one again.
func claims(t *testing.T, url, id string, p *process) {
	t.Helper()
	ready(t, p)
	publish(t, stranger(t, url), prefix+everyone, fmt.Sprintf(`{"id":%q,"definition":"d"}`, id))
	kit.WaitFor(t, "it is a member", func() bool { return p.Stats().Members == 2 })
}

// slow has a process expire members late, so that a test decides when.
func slow(o *Options) { o.Heartbeat = never }

// An owner that receives a request and does not reply is waited for until it is silent for too long.
func TestASilentOwnerIsGivenUp(t *testing.T) {
	url := serve(t)
	p := start(t, url, func(o *Options) { o.Silence = 20 * time.Millisecond })
	requests := tap(t, url, prefix+"other")
	c := stranger(t, url)
	var f *Forwarded
	kit.WaitFor(t, "a round is forwarded", func() bool {
		publish(t, c, prefix+everyone, `{"id":"other","definition":"d"}`)
		f = p.Forward(Round{Target: "t0", Source: "x"})
		for i := 1; f == nil && i < 100; i++ {
			f = p.Forward(Round{Target: fmt.Sprint("t", i), Source: "x"})
		}
		return f != nil
	})
	<-requests
	if err := wait(t, f); !errors.Is(err, errSilent) {
		t.Errorf("%v", err)
	}
}

// An owner that reports a round as pending is waited for, however long that takes.
func TestAnOwnerThatReportsIsWaitedFor(t *testing.T) {
	url := serve(t)
	a := start(t, url)
	b := start(t, url)
	together(t, a, b)
	b.hold()
	reports := tap(t, url, prefix+a.id)
	f := a.forward(t)
	for range 3 {
		m := decode(t, (<-reports).Data)
		if !slices.Equal(m.Pending, []uint64{f.id}) || len(m.Done)+len(m.Failed) > 0 {
			t.Fatalf("%+v", m)
		}
	}
	reported := func() time.Time {
		a.mu.Lock()
		defer a.mu.Unlock()
		return f.reported
	}
	asked := reported()
	kit.WaitFor(t, "the report counts", func() bool { return reported().After(asked) })
	a.expire(reported().Add(never - time.Minute))
	select {
	case <-f.done:
		t.Fatalf("it is given up: %v", f.err)
	default:
	}
	a.expire(time.Now().Add(2 * never))
	if err := wait(t, f); !errors.Is(err, errSilent) {
		t.Errorf("%v", err)
	}
	b.release() // what is reported too late has no effect
}

// Nobody receives a request: the server says so, and the process need not wait.
func TestARequestThatNobodyReceivesIsGivenUpAtOnce(t *testing.T) {
	url := serve(t)
	p := start(t, url, slow)
	claims(t, url, "other", p)
	if err := wait(t, p.forward(t)); !errors.Is(err, errUndelivered) {
		t.Errorf("%v", err)
	}
	if n := p.Stats().Members; n != 1 {
		t.Errorf("%d members", n)
	}
}

// The connection of the owner is lost while it runs a round: it may still run it, so it is waited for as for one that
// is silent.
func TestAnOwnerThatIsKilledIsGivenUpOnceItIsSilent(t *testing.T) {
	a, b := pair(t)
	b.hold()
	f := a.forward(t)
	kit.WaitFor(t, "the round begins", func() bool { return b.rounds() == 1 })
	b.client.Close()
	a.expire(time.Now()) // it was not silent for long
	select {
	case <-f.done:
		t.Fatalf("it is given up: %v", f.err)
	default:
	}
	kit.WaitFor(t, "the owner is forgotten", func() bool {
		a.expire(time.Now().Add(2 * never)) // once more for a heartbeat that arrives now
		return a.Stats().Members == 1
	})
	if err := wait(t, f); !errors.Is(err, errSilent) {
		t.Errorf("%v", err)
	}
}

func TestAProcessThatIsCutOffRunsItsRoundsAtOnce(t *testing.T) {
	s := natsserver.Serve(t, &server.Options{})
	a := start(t, s.ClientURL(), slow)
	claims(t, s.ClientURL(), "other", a)
	s.Shutdown()
	kit.WaitFor(t, "the connection is lost", func() bool { return !a.client.Conn().IsConnected() })
	if err := wait(t, a.forward(t)); err == nil {
		t.Error("nobody ran it")
	}
}

// A process that leaves ends the rounds that it runs, begins no others, and is asked for none.
func TestAProcessLeaves(t *testing.T) {
	a, b := pair(t)
	b.hold()
	f := a.forward(t)
	kit.WaitFor(t, "the round begins", func() bool { return b.rounds() == 1 })
	left := make(chan struct{})
	go func() {
		b.Leave(t.Context())
		close(left)
	}()
	kit.WaitFor(t, "others notice", func() bool { return a.Stats().Members == 1 })
	if b.Forward(Round{Target: "t"}) != nil {
		t.Error("it forwards rounds")
	}
	select {
	case <-left:
		t.Error("it has left while it ran a round")
	default:
	}
	replies := tap(t, a.conn.ConnectedUrl(), prefix+"asker")
	publish(t, stranger(t, a.conn.ConnectedUrl()), prefix+b.id,
		`{"from":"asker","definition":"d","rounds":[{"id":5,"target":"t","source":"x"}]}`)
	if m := decode(t, (<-replies).Data); !slices.Equal(m.Failed, []uint64{5}) {
		t.Errorf("%+v", m)
	}
	b.release()
	<-left
	b.Close()
	if err := wait(t, f); err != nil {
		t.Error(err)
	}
}

// A stop does not wait longer than it may. What is canceled then is reported by Close, so that nobody waits for it.
func TestACanceledRoundIsReportedBeforeTheEnd(t *testing.T) {
	a, b := pair(t, func(o *Options) { o.Gap = never })
	first := a.forward(t) // what follows waits for the gap
	if err := wait(t, first); err != nil {
		t.Fatal(err)
	}
	b.hold()
	f := a.forward(t)
	a.flush()
	kit.WaitFor(t, "the round begins", func() bool { return b.rounds() == 2 })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b.Leave(ended)
	b.lock.Lock()
	done := b.held[0]
	b.lock.Unlock()
	done(context.Canceled)
	b.Close()
	if err := wait(t, f); !errors.Is(err, errFailed) {
		t.Errorf("%v", err)
	}
}

// Neither what can't be decoded, nor what others than the owner report, has an effect.
func TestHostileMessages(t *testing.T) {
	url := serve(t)
	a, b := start(t, url), start(t, url)
	together(t, a, b)
	b.hold()
	f := a.forward(t)
	kit.WaitFor(t, "the round begins", func() bool { return b.rounds() == 1 })
	c := stranger(t, url)
	for _, text := range []string{
		"", "x", "{}", "[]", `{"id":""}`, `{"id":"a.b","definition":"d"}`, `{"id":"*","definition":"d"}`,
		`{"id":">","definition":"d"}`, `{"id":"all","definition":"d"}`,
		`{"id":"` + strings.Repeat("a", 65) + `","definition":"d"}`, `{"id":5}`,
		fmt.Sprintf(`{"id":%q,"definition":"x"}`, a.id),
	} {
		publish(t, c, prefix+everyone, text)
	}
	for _, text := range []string{
		"", "x", "{}", "[]", `{"from":"a.b","rounds":[{"id":1}]}`,
		`{"from":">","definition":"d","rounds":[{"id":1,"target":"t","source":"x"}]}`, `{"from":"all","done":[1]}`,
		fmt.Sprintf(`{"from":"other","definition":"d","done":[%d],"failed":[%d]}`, f.id, f.id),
		fmt.Sprintf(`{"from":%q,"done":[%d]}`, a.id, f.id),
		fmt.Sprintf(`{"from":%q,"done":[0,99,18446744073709551615],"failed":[98],"pending":[97]}`, b.id),
		`{"from":"other","rounds":[{"id":-1}]}`, `{"from":"other","definition":"d","rounds":{"id":1}}`,
	} {
		publish(t, c, prefix+a.id, text)
	}
	for _, number := range []string{"1", "0", "x", "18446744073709551616"} {
		publish(t, c, prefix+a.id+"."+number, "{}")
	}
	// The messages above are handled: what follows them is.
	replies := tap(t, url, prefix+"asker")
	publish(t, c, prefix+a.id, `{"from":"asker","definition":"d","rounds":[{"id":5,"target":"t","source":"x"}]}`)
	<-replies
	if n := a.Stats().Members; n != 2 {
		t.Errorf("%d members", n)
	}
	select {
	case <-f.done:
		t.Errorf("a round has ended by a forged report: %v", f.err)
	default:
	}
	if n := a.rounds(); n != 1 {
		t.Errorf("%d rounds were run", n)
	}
	b.release()
	if err := wait(t, f); err != nil {
		t.Error(err)
	}
}

// The same request twice is one round.
func TestARepeatedRequestIsRunOnce(t *testing.T) {
	url := serve(t)
	p := start(t, url)
	ready(t, p)
	p.hold()
	c := stranger(t, url)
	replies := tap(t, url, prefix+"asker")
	for range 3 {
		publish(t, c,
			prefix+p.id,
			`{"from":"asker","definition":"d","rounds":[{"id":5,"target":"t","source":"x"},{"id":5,"target":"t","source":"x"}]}`)
	}
	publish(t, c, prefix+p.id, `{"from":"asker","definition":"d","rounds":[{"id":6,"target":"t","source":"x"}]}`)
	kit.WaitFor(t, "the last one begins", func() bool { return p.rounds() >= 2 })
	if n := p.rounds(); n != 2 {
		t.Errorf("%d rounds", n)
	}
	p.release()
	var done []uint64
	for len(done) < 2 {
		done = append(done, decode(t, (<-replies).Data).Done...)
	}
	if slices.Sort(done); !slices.Equal(done, []uint64{5, 6}) {
		t.Errorf("%v", done)
	}
}

// What a process remembers is limited.
func TestTooManyRoundsAreRunWhereTheirEventsAre(t *testing.T) {
	a, b := pair(t, func(o *Options) { o.Heartbeat = time.Second })
	b.hold()
	n := 0
	for i := range 4 * maxPending {
		if a.Forward(Round{Target: fmt.Sprint("t", i), Source: "x"}) != nil {
			n++
		}
	}
	if n != maxPending {
		t.Errorf("%d rounds are forwarded", n)
	}
	b.mu.Lock()
	b.servedNow = maxServed
	b.mu.Unlock()
	if b.accept("other", "d", 1) {
		t.Error("it runs any number of rounds")
	}
}
