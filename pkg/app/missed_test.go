package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/workers"
	"belfry/pkg/missed"
	"belfry/test/kit"
)

// startFront starts a belfry without workers: what it writes reaches the log, and stays there.
func (p *place) startFront() *App { return p.startRoles(plan.RoleFront) }

// startRoles starts a belfry of some roles, which need not be able to share what they use with other processes.
func (p *place) startRoles(roles ...string) *App {
	p.Helper()
	return p.startWith(roles, func(*App) {})
}

// startWith calls a function after each step of the start.
func (p *place) startWith(roles []string, change func(*App)) *App {
	p.Helper()
	plan, err := plan.Compile(p.config)
	if err != nil {
		p.Fatal(err)
	}
	a := newApp(p.config, plan, p.log(), roles)
	for _, each := range a.wiring.parts {
		if err := a.parts.Start(p.Context(), each, a.now()); err != nil {
			p.Fatal(err)
		}
		change(a)
	}
	p.Cleanup(func() { _ = a.Stop(context.Background()) })
	return a
}

// repaired waits until what a listener has missed is repaired.
func (p *place) repaired(a *App, listener string) missed.Missed {
	p.Helper()
	var found missed.Missed
	kit.WaitUntil(p, func() error {
		for _, s := range a.wiring.missed.Missed() {
			if found = s.Missed; s.Consumer == listener && !s.Repaired.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("not repaired: %+v\n%s", a.wiring.missed.Missed(), p.logged)
	})
	return found
}

// differences waits until a belfry that is stopped would find so many.
func (p *place) differences() int {
	p.Helper()
	r, err := command.Verify.Do(p.Context(), p.config, command.VerifyRequest{})
	if err != nil {
		p.Fatal(err)
	}
	return len(r.Differences)
}

// The bus's folder is deleted while its log has events that no worker has handled: no event will
// ever say what they said, so belfry finds out by itself what they would have changed.
func TestALostLogIsNoticedAtTheStartAndWhatItMeantIsRepaired(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	audit := jetstream.ConsumerConfig{Durable: "audit", AckPolicy: jetstream.AckExplicitPolicy,
		FilterSubject: "events.>"}
	if _, err := a.Bus().JetStream().CreateConsumer(t.Context(), "EVENTS", audit); err != nil {
		t.Fatal(err)
	}
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.want(a, "POST", "/authors", `{"uuid":"gone"}`, http.StatusCreated)
	p.want(a, "POST", "/books", `{"uuid":"left","author":"gone"}`, http.StatusCreated)
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name, cascade.Name) })
	p.stop(a) // which stores what is pending for audit

	a = p.startFront()
	for i := range 20 {
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","author":"lem","title":"T"}`, i), http.StatusCreated)
	}
	p.want(a, "DELETE", "/authors/gone", "", http.StatusNoContent)
	if err := a.now().Relay.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error {
		if _, pending, err := a.Set().Store("Books").Count(t.Context()); err != nil || pending > 0 {
			return fmt.Errorf("%d events are not cleared: %w", pending, err)
		}
		if _, pending, err := a.Set().Store("Authors").Count(t.Context()); err != nil || pending > 0 {
			return fmt.Errorf("%d events are not cleared: %w", pending, err)
		}
		return nil
	})
	p.stop(a)
	if n := p.differences(); n != 21 {
		t.Fatalf("%d differences before the loss, want 21", n)
	}
	if err := os.RemoveAll(p.path("data/bus")); err != nil {
		t.Fatal(err)
	}

	a = p.start()
	for _, listener := range []string{mapping.Name, cascade.Name} {
		if m := p.repaired(a, listener); m.Reason != missed.Replaced || !m.AtLeast {
			t.Errorf("%s: %+v", listener, m)
		}
	}
	// What nobody repairs by itself is shown, and keeps no request from being served: restarting would repair nothing.
	status, body := p.do(a, "GET", "/readyz", "")
	if status != http.StatusOK || !strings.Contains(body, "listener audit has missed events: the log is") ||
		strings.ContainsAny(body, "0123456789") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if log := p.logged.String(); !strings.Contains(log, "events left the log before a listener had handled them") {
		t.Errorf("logged:\n%s", log)
	}
	p.stop(a)
	if n := p.differences(); n != 0 {
		t.Errorf("%d differences are left", n)
	}
}

// positioned returns nil once all that was written is published, consumers have handled it, and their positions are
// stored. Positions that were stored before the last event don't count.
func positioned(a *App, consumers ...string) error {
	ctx := context.Background()
	stored, err := a.Set().Store("LogPositions").Get(ctx, "EVENTS")
	if err != nil {
		return err
	}
	var o struct {
		State struct {
			Log       time.Time
			Last      uint64
			Consumers map[string]struct{ Pending int }
		}
	}
	if err := json.Unmarshal(stored.Body, &o); err != nil {
		return err
	}
	for _, name := range consumers {
		if c, ok := o.State.Consumers[name]; !ok || c.Pending > 0 {
			return errors.New(name + " is not stored as done: " + string(stored.Body))
		}
	}
	// What a consumer has written in the meantime is pending before it acknowledges.
	for name, s := range a.Set().Stores() {
		if _, pending, err := s.Count(ctx); err != nil || pending > 0 {
			return fmt.Errorf("%d events of %s are not cleared: %w", pending, name, err)
		}
	}
	log, err := a.Bus().JetStream().Stream(ctx, "EVENTS")
	if err != nil {
		return err
	}
	if now := log.CachedInfo(); !now.Created.Equal(o.State.Log) || now.State.LastSeq != o.State.Last {
		return fmt.Errorf("stored before event %d of the log of %s: %s", now.State.LastSeq, now.Created, stored.Body)
	}
	return nil
}

// The log is lost with the request of a mail in it. The store of tokens says that it is not sent, so it is; what was
// sent before is not sent again, and nothing is said to be missing afterwards.
func TestMailsThatALostLogHadRequestedAreSent(t *testing.T) {
	patience := workers.MailPatience
	workers.MailPatience = 0
	defer func() { workers.MailPatience = patience }()
	p := newPlace(t, books+`
mailers: {default: {type: file, folder: mails}}
authentication:
  providers:
    email: {}
`)
	mails := func(address string) (n int) {
		files, err := filepath.Glob(p.path("mails/*.eml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), address) {
				n++
			}
		}
		return n
	}
	register := func(a *App, address string) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+a.HTTPAddress()+"/auth/email",
			strings.NewReader(`{"register":true,"login":"`+address+`","password":"a fine password"}`))
		if err != nil {
			t.Fatal(err)
		}
		if status, text := p.send(req); status >= 300 {
			t.Fatalf("%d %s", status, text)
		}
	}
	a := p.start()
	register(a, "before@example.com")
	kit.WaitFor(t, "the mail", func() bool { return mails("before@example.com") == 1 })
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name, cascade.Name, mail.Name) })
	p.stop(a)
	a = p.startFront()
	register(a, "lost@example.com")
	if err := a.now().Relay.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error {
		if _, pending, err := a.Set().Store("Tokens").Count(t.Context()); err != nil || pending > 0 {
			return fmt.Errorf("%d events are not cleared: %w", pending, err)
		}
		return nil
	})
	p.stop(a)
	if err := os.RemoveAll(p.path("data/bus")); err != nil {
		t.Fatal(err)
	}

	a = p.start()
	p.repaired(a, mail.Name)
	if status, body := p.do(a, "GET", "/readyz", ""); status != http.StatusOK ||
		strings.Contains(body, "listener mail") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if before, lost := mails("before@example.com"), mails("lost@example.com"); before != 1 || lost != 1 {
		t.Errorf("%d and %d mails, want one each", before, lost)
	}
}
