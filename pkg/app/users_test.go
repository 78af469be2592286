package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/account/admin"
	"belfry/pkg/app/command"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
)

const managed = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Users: {expose: {}}
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
`

// ask executes a request and returns the user that it is about.
func (p *place) ask(q command.UserRequest) (admin.Account, error) {
	p.Helper()
	reply, err := command.Users.Do(p.Context(), p.config, q)
	if err != nil {
		return admin.Account{}, err
	}
	return reply.Users[0], nil
}

func (p *place) mustAsk(q command.UserRequest) admin.Account {
	p.Helper()
	a, err := p.ask(q)
	if err != nil {
		p.Fatal(q.Act, err)
	}
	return a
}

// logIn logs in, and returns the status and the token.
func (p *place) logIn(a *App, login, password string) (status int, token string) {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, "http://"+a.HTTPAddress()+"/auth/email",
		strings.NewReader(fmt.Sprintf(`{"login":%q,"password":%q}`, login, password)))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Prefer", "return=representation")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var issued struct{ Token string }
	_ = json.NewDecoder(res.Body).Decode(&issued)
	return res.StatusCode, issued.Token
}

func (p *place) me(a *App, token string) int {
	p.Helper()
	req, err := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://"+a.HTTPAddress()+"/auth/me", nil)
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// The same requests have the same results beside a serving process and without one.
func TestUsersAreManagedWhileServingAndStopped(t *testing.T) {
	p := newPlace(t, managed)
	// The first admin, before there is any data.
	root, err := p.ask(command.UserRequest{Act: command.CreateUser, By: "operator", Login: "root@example.com",
		Password: "a fine password", Admin: true, Fields: []byte(`{"name":"Root","admin":false}`)})
	if err != nil || !root.Admin || root.Disabled || !strings.Contains(string(root.User), `"name":"Root"`) {
		t.Fatalf("%+v, %v", root, err)
	}
	a := p.start()
	if status, token := p.logIn(a, "root@example.com", "a fine password"); status != http.StatusOK ||
		p.me(a, token) != http.StatusOK {
		t.Fatalf("the admin who was created before the start: %d", status)
	}
	manage := func(login string) {
		t.Helper()
		made, err := p.ask(command.UserRequest{Act: command.CreateUser, Login: login, Password: "a fine password",
			Validated: true})
		if err != nil || made.Admin || !made.HasPassword || len(made.Idents) != 1 || !made.Idents[0].Validated {
			t.Fatalf("%+v, %v", made, err)
		}
		if got := p.mustAsk(command.UserRequest{Act: command.ShowUser, User: made.UUID}); got.UUID != made.UUID {
			t.Errorf("%+v", got)
		}
		if got := p.mustAsk(command.UserRequest{Act: command.GrantAdmin, User: login}); !got.Admin {
			t.Errorf("%+v", got)
		}
		if got := p.mustAsk(command.UserRequest{Act: command.RevokeAdmin, User: login}); got.Admin {
			t.Errorf("%+v", got)
		}
		if got := p.mustAsk(command.UserRequest{Act: command.DisableUser, User: login}); !got.Disabled {
			t.Errorf("%+v", got)
		}
		if got := p.mustAsk(command.UserRequest{Act: command.EnableUser, User: login}); got.Disabled {
			t.Errorf("%+v", got)
		}
		if _, err := p.ask(command.UserRequest{Act: command.SetPassword, User: login, Password: "short"}); !errors.Is(
			err, errs.Invalid) || !strings.Contains(err.Error(), "8 to 1024 bytes") {
			t.Error(err)
		}
		p.mustAsk(command.UserRequest{Act: command.SetPassword, User: login, Password: "a better password"})
		if _, err := p.ask(command.UserRequest{Act: command.CreateUser, Login: login,
			Password: "a fine password"}); !errors.Is(err, errs.Exists) {
			t.Error(err)
		}
		p.mustAsk(command.UserRequest{Act: command.DeleteUser, User: login})
		for _, act := range []command.UserAct{command.ShowUser, command.GrantAdmin, command.DisableUser,
			command.DeleteUser} {
			if _, err := p.ask(command.UserRequest{Act: act, User: made.UUID}); !errors.Is(err, errs.NotFound) {
				t.Error(act, err)
			}
		}
		if _, err := p.ask(command.UserRequest{Act: "unknown", User: root.UUID}); !errors.Is(err, errs.Invalid) {
			t.Error(err)
		}
	}
	manage("ada@example.com")
	for range command.UserPage + 1 {
		if _, err := a.Set().Store("Users").Save(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (all []string) {
		t.Helper()
		pages := 0
		_, err := command.Users.Do(t.Context(), p.config, command.UserRequest{Act: command.ListUsers},
			func(page command.UserReply) {
				pages++
				for _, u := range page.Users {
					all = append(all, u.UUID)
				}
			})
		if err != nil || pages < 2 {
			t.Fatal(err)
		}
		return all
	}
	served := list()
	if len(served) != command.UserPage+2 {
		t.Errorf("%d users", len(served))
	}
	p.stop(a)
	manage("bob@example.com")
	if stopped := list(); strings.Join(stopped, " ") != strings.Join(served, " ") {
		t.Errorf("served %d users, stopped %d", len(served), len(stopped))
	}
	for _, secret := range []string{"a fine password", "a better password", "argon2id"} {
		if strings.Contains(p.logged.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}

func TestTheSessionsOfAUserEndAtOnceWhenACommandDisablesThem(t *testing.T) {
	p := newPlace(t, managed)
	a := p.start()
	made, err := p.ask(command.UserRequest{Act: command.CreateUser, By: "operator", Login: "ada@example.com",
		Password: "a fine password"})
	if err != nil {
		t.Fatal(err)
	}
	_, token := p.logIn(a, "ada@example.com", "a fine password")
	if p.me(a, token) != http.StatusOK {
		t.Fatal("no session")
	}
	p.mustAsk(command.UserRequest{Act: command.DisableUser, By: "operator", User: made.UUID})
	if status := p.me(a, token); status != http.StatusUnauthorized {
		t.Errorf("the session: %d", status)
	}
	if status, _ := p.logIn(a, "ada@example.com", "a fine password"); status != http.StatusForbidden {
		t.Errorf("a login: %d", status)
	}
	if answer, err := command.Access.Do(t.Context(), p.config,
		command.Question{User: made.UUID, Store: "Users", Operation: "get", UUID: made.UUID}); err != nil ||
		answer.Granted() || !strings.Contains(answer.NoRoute, "disabled") {
		t.Errorf("%+v, %v", answer, err)
	}
	p.mustAsk(command.UserRequest{Act: command.EnableUser, User: made.UUID})
	if status, _ := p.logIn(a, "ada@example.com", "a fine password"); status != http.StatusOK {
		t.Errorf("a login of the enabled user: %d", status)
	}
}

// What a command does without a serving process is published by the next one.
func TestWhatACommandDoesIsAnEvent(t *testing.T) {
	p := newPlace(t, managed)
	made, err := p.ask(command.UserRequest{Act: command.CreateUser, By: "operator", Login: "ada@example.com", Password: "a fine password"})
	if err != nil {
		t.Fatal(err)
	}
	p.mustAsk(command.UserRequest{Act: command.DisableUser, By: "operator", User: made.UUID})
	a := p.start()
	kit.WaitFor(t, "the copy of the ident, whose write would be the user's last event", func() bool {
		user, err := a.Set().Store("Users").Get(t.Context(), made.UUID)
		return err == nil && strings.Contains(string(user.Body), "ada@example.com_email")
	})
	p.mustAsk(command.UserRequest{Act: command.EnableUser, By: "operator", User: made.UUID})
	find := func(ctx context.Context, name event.Name, of string, uuid string) (e event.Envelope) {
		t.Helper()
		kit.WaitFor(t, fmt.Sprintf("%s of %s", name, of), func() bool {
			entry, err := eventlog.Last(ctx, a.Bus().Conn(), event.Subject(name, of, uuid))
			if err != nil {
				return false
			}
			e, err = event.Decode(entry.Data)
			return err == nil && (name != event.StoreUpdated || e.Ctx.UserAgent == "belfry user enable (operator)")
		})
		if e.Origin != event.OriginCommand || e.Actor != nil || !strings.HasSuffix(e.Ctx.UserAgent, "(operator)") ||
			strings.Contains(string(entry(t, e)), "argon2id") {
			t.Errorf("%s: %+v", name, e)
		}
		return e
	}
	find(t.Context(), event.Register, "Users", made.UUID)
	find(t.Context(), event.StoreSaved, "Idents", "ada@example.com_email")
	if e := find(t.Context(), event.StoreUpdated, "Users", made.UUID); string(e.Previous["disabled"]) != "true" {
		t.Errorf("%+v", e)
	}
}

func entry(t *testing.T, e event.Envelope) []byte {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
