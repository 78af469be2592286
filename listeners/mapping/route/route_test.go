package route

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

func TestAProcessThatIsAloneSendsHeartbeatsOnly(t *testing.T) {
	url := serve(t)
	all := tap(t, url, Subjects)
	p := start(t, url)
	for range 20 {
		if p.Forward(Round{Target: "t", Source: "x"}) != nil {
			t.Fatal("a round is forwarded to nobody")
		}
		if m := <-all; m.Subject != prefix+everyone || m.Reply != "" {
			t.Errorf("%s on %s", m.Data, m.Subject)
		}
	}
	if f := (*Group)(nil).Forward(Round{Target: "t"}); f != nil {
		t.Error("without a group a round is forwarded")
	}
}

// Each target has one owner, on which all agree, and both have some.
func TestProcessesAgreeOnTheOwner(t *testing.T) {
	a, b := pair(t)
	for i := range 200 {
		r := Round{Mapping: i % 3, Target: fmt.Sprint("target-", i), Source: "x"}
		forA, forB := a.Forward(r), b.Forward(r)
		if (forA == nil) == (forB == nil) {
			t.Fatalf("%v: it is forwarded by both, or by neither", r)
		}
		for _, f := range []*Forwarded{forA, forB} {
			if f != nil && wait(t, f) != nil {
				t.Fatal(f.err)
			}
		}
	}
	if a.rounds() < 50 || b.rounds() < 50 || a.rounds()+b.rounds() != 200 {
		t.Errorf("they ran %d and %d rounds", a.rounds(), b.rounds())
	}
	if s := a.Stats(); int(s.Served) != a.rounds() || int(s.Forwarded) != b.rounds() || s.Fallbacks != 0 { //nolint:gosec // small
		t.Errorf("%+v", s)
	}
}

// The owner gets what the asker asked for, and the asker waits until the round has ended.
func TestARoundIsWaitedFor(t *testing.T) {
	a, b := pair(t)
	b.hold()
	var f *Forwarded
	want := Round{Mapping: 7, Source: "x", Fence: true, Trace: "00-1-2-01"}
	for i := 0; f == nil; i++ {
		want.Target = fmt.Sprint("t", i)
		f = a.Forward(want)
	}
	kit.WaitFor(t, "the round begins", func() bool { return b.rounds() == 1 })
	select {
	case <-f.done:
		t.Fatal("the wait has ended before the round")
	default:
	}
	if b.ran[0] != want {
		t.Errorf("%+v is run, want %+v", b.ran[0], want)
	}
	b.release()
	if err := wait(t, f); err != nil {
		t.Error(err)
	}
}

func TestAFailedRoundIsForTheAskerToRun(t *testing.T) {
	a, b := pair(t)
	b.fail = errors.New("the disk is full")
	if err := wait(t, a.forward(t)); !errors.Is(err, errFailed) {
		t.Errorf("%v", err)
	}
	if s := a.Stats(); s.Fallbacks != 1 || s.Forwarded != 0 {
		t.Errorf("%+v", s)
	}
}

// What accumulates while a message is sent shares the next one.
func TestManyRoundsShareMessages(t *testing.T) {
	url := serve(t)
	// So rare that also a slow machine sends few messages until all is done.
	rarely := func(o *Options) { o.Gap, o.Heartbeat = time.Second/2, time.Second }
	a, b := start(t, url, rarely), start(t, url, rarely)
	together(t, a, b)
	requests, replies := tap(t, url, prefix+b.id), tap(t, url, prefix+a.id)
	var all []*Forwarded
	for i := range 2000 {
		if f := a.Forward(Round{Target: fmt.Sprint("t", i), Source: "x"}); f != nil {
			all = append(all, f)
		}
	}
	for _, f := range all {
		if err := wait(t, f); err != nil {
			t.Fatal(err)
		}
	}
	if n := max(len(requests), len(replies)); n > len(all)/10 {
		t.Errorf("%d rounds took %d and %d messages", len(all), len(requests), len(replies))
	}
}

// Messages are no larger than the bus takes. A round that is larger by itself is not forwarded.
func TestMessagesFitTheBus(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{MaxPayload: 1000}).ClientURL()
	a, b := start(t, url), start(t, url)
	together(t, a, b)
	var all []*Forwarded
	for i := range 500 {
		if f := a.Forward(Round{Target: fmt.Sprint("t", i), Source: strings.Repeat("x", 200)}); f != nil {
			all = append(all, f)
		}
	}
	for _, f := range all {
		if err := wait(t, f); err != nil {
			t.Fatal(err)
		}
	}
	var large *Forwarded
	for i := 0; large == nil; i++ {
		large = a.Forward(Round{Target: fmt.Sprint("t", i), Source: strings.Repeat("x", 1000)})
	}
	if wait(t, large) == nil {
		t.Error("a round that does not fit a message was run")
	}
}

func TestProcessesWithOtherMappingsRunNothingForEachOther(t *testing.T) {
	url := serve(t)
	a := start(t, url)
	other := start(t, url, func(o *Options) { o.Definition = "another" })
	b := start(t, url)
	kit.WaitFor(t, "equal processes know each other",
		func() bool { return a.Stats().Members >= 2 && b.Stats().Members >= 2 })
	ready(t, other)
	// One that asks all the same is refused at once.
	replies := tap(t, url, prefix+"asker")
	publish(t, stranger(t, url), prefix+other.id,
		`{"from":"asker","definition":"d","rounds":[{"id":5,"target":"t","source":"x"}]}`)
	if m := decode(t, (<-replies).Data); len(m.Failed) != 1 || m.Failed[0] != 5 {
		t.Errorf("%+v", m)
	}
	if other.rounds() > 0 || other.Stats().Members != 1 || a.Stats().Members != 2 {
		t.Errorf("it has run %d rounds for other mappings, and there are %d and %d members", other.rounds(),
			other.Stats().Members, a.Stats().Members)
	}
}

// A member that announces other mappings is none any more.
func TestAMemberWhoseMappingsChangeIsForgotten(t *testing.T) {
	url := serve(t)
	p := start(t, url, slow)
	claims(t, url, "other", p)
	publish(t, stranger(t, url), prefix+everyone, `{"id":"other","definition":"e"}`)
	kit.WaitFor(t, "it is none any more", func() bool { return p.Stats().Members == 1 })
}

func TestAMemberWithoutHeartbeatsIsForgotten(t *testing.T) {
	url := serve(t)
	p := start(t, url, func(o *Options) { o.Expiry = 2 * time.Second }) // longer than between two looks
	c := stranger(t, url)
	kit.WaitFor(t, "it is a member", func() bool {
		publish(t, c, prefix+everyone, `{"id":"other","definition":"d"}`) // once more where it has expired unseen
		return p.Stats().Members == 2
	})
	kit.WaitFor(t, "it is none any more", func() bool { return p.Stats().Members == 1 })
}

// It warns once, and tries again from time to time.
func TestWithoutAPermissionAProcessIsAlone(t *testing.T) {
	for name, permissions := range map[string]*server.Permissions{
		"to subscribe": {Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}}},
		"to publish":   {Publish: &server.SubjectPermission{Allow: []string{"x"}}},
		"both": {Publish: &server.SubjectPermission{Allow: []string{"x"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}}},
	} {
		t.Run(name, func(t *testing.T) {
			url := natsserver.Serve(t, &server.Options{Users: []*server.User{
				{Username: "worker", Password: "pw"}, {Username: "denied", Password: "pw", Permissions: permissions},
			}}).ClientURL()
			allowed := start(t, "nats://worker:pw@"+url[len("nats://"):])
			attempts, warnings := &attempting{}, &kit.Tail{}
			denied := start(t, "nats://denied:pw@"+url[len("nats://"):], func(o *Options) {
				attempts.Bus = o.Bus
				o.Bus, o.Logger = attempts, slog.New(slog.NewTextHandler(warnings, nil))
			})
			kit.WaitFor(t, "it tries again", func() bool { return attempts.n.Load() >= 4 })
			if n := strings.Count(warnings.String(), "share no targets"); n != 1 ||
				strings.Count(warnings.String(), "\n") != 1 {
				t.Errorf("%d warnings:\n%s", n, warnings)
			}
			if denied.Forward(Round{Target: "t"}) != nil || denied.Stats().Members != 1 {
				t.Error("it forwards rounds")
			}
			if name != "to subscribe" && allowed.Stats().Members != 1 {
				t.Error("others count it as a member")
			}
		})
	}
}

// attempting counts how often a process takes part.
type attempting struct {
	Bus
	n atomic.Int64
}

func (b *attempting) UntilDenied(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc) {
	b.n.Add(1)
	return b.Bus.UntilDenied(ctx, subjects...)
}

func decode(t *testing.T, data []byte) (m message) {
	t.Helper()
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

var _ Bus = (*bus.Bus)(nil)
