package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// gets subscribes to announcements of gets. all returns the objects whose gets were announced, once that of
// an object that the test gets last was.
func (p *place) gets(a *App) (all func(last string) []string) {
	p.Helper()
	sub, err := a.Bus().Conn().SubscribeSync(string(event.StoreGet))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = sub.Unsubscribe() })
	kit.WaitFor(p, "the bus knows the subscription", func() bool { return a.Bus().HasInterest(event.StoreGet) })
	return func(last string) (all []string) {
		for {
			m, err := natsserver.Next(sub)
			if err != nil {
				p.Fatalf("%v: announced are %q", err, all)
			}
			var e event.Envelope
			if err := json.Unmarshal(m.Data, &e); err != nil {
				p.Fatal(err)
			}
			if e.UUID == last {
				return all
			}
			all = append(all, fmt.Sprintf("%s %s by %s", e.Store, e.UUID, e.Origin))
		}
	}
}

// Who listens to gets is notified of what somebody read. What belfry reads to do something else is nobody's get:
// to wait for a write's consequences, to keep copies, to verify and to repair, to log in, to manage users.
func TestGetsAloneAreAnnounced(t *testing.T) {
	p := newPlace(t, books+`
  Users: {expose: {}}
binaries: {files: {map: {Authors: [covers]}}}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`)
	a := p.start()
	announced := p.gets(a)
	send := func(method, path, body string, want int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.HTTPAddress()+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Prefer", "wait=60")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if text, _ := io.ReadAll(res.Body); res.StatusCode != want {
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
		}
	}
	send("POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	send("POST", "/books", `{"uuid":"solaris","author":"lem"}`, http.StatusCreated)
	send("PUT", "/authors/lem", `{"name":"Lem"}`, http.StatusOK)
	send("PATCH", "/authors/lem", `{"name":"Lem"}`, http.StatusOK)
	send("GET", "/books", "", http.StatusOK)
	send("PUT", "/binary/upload/Authors/lem/covers/add", "a cover", http.StatusCreated)
	send("GET", "/binary/Authors/lem/covers/0", "", http.StatusOK)
	p.mustAsk(command.UserRequest{Act: command.CreateUser, Login: "ada@example.com", Admin: true, Validated: true,
		Password: "correct horse battery"})
	_, token := p.logIn(a, "ada@example.com", "correct horse battery")
	p.me(a, token)
	if err := a.wiring.filling.Again(t.Context(), "a loss"); err != nil {
		t.Fatal(err)
	}
	send("DELETE", "/authors/lem", "", http.StatusNoContent)
	send("POST", "/authors", `{"uuid":"last"}`, http.StatusCreated)
	send("GET", "/authors/last", "", http.StatusOK)
	if all := announced("last"); len(all) > 0 {
		t.Errorf("gets that nobody made: %q", all)
	}
}
