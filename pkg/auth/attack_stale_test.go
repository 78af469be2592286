package auth_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// A request can begin with a session and be held, by a body that comes slowly
// for instance, until the session has ended: what it then does must not undo
// what ended the session.

func TestAHeldRequestSetsNoPassword(t *testing.T) {
	p := hunt(t)
	thief, owner := p.visitor(), p.visitor()
	thief.is(thief.register("ada@example.com", "the password of the thief"), http.StatusNoContent)
	stale := auth.Client{Session: thief.session()}
	owner.recover("ada@example.com", "the password of the owner")

	if _, err := p.auth.ChangePassword(t.Context(), "the password of the thief", "again that of the thief", stale); !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("the thief changes the password: %v", err)
	}
	_, _, err := p.auth.Register(t.Context(), auth.Credentials{Login: "thief@example.com", Password: "the password of the thief"}, stale)
	if !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("the thief adds an address: %v", err)
	}
	owner.is(owner.login("ada@example.com", "the password of the owner"), http.StatusNoContent)
	if back := p.visitor(); back.login("thief@example.com", "the password of the owner").StatusCode == http.StatusNoContent {
		t.Error("the thief has kept a way in")
	}
}

// Who came by a provider has no password, and need not show one to set it.
func TestAHeldRequestSetsNoFirstPassword(t *testing.T) {
	p := hunt(t)
	owner := p.visitor()
	owner.visit("583231")
	stale := auth.Client{Session: owner.session()}
	owner.is(owner.ask("PUT", "/auth/email", `{"newPassword":"the password of the owner"}`), http.StatusNoContent)

	if _, err := p.auth.ChangePassword(t.Context(), "", "the password of the thief", stale); !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("the thief sets a password: %v", err)
	}
	if _, _, err := p.auth.Register(t.Context(), auth.Credentials{Login: "thief@example.com", Password: "the password of the thief"}, stale); !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("the thief sets a password with an address: %v", err)
	}
	owner.is(owner.ask("PUT", "/auth/email", `{"password":"the password of the owner","newPassword":"another password"}`), http.StatusNoContent)
}

func TestAHeldVisitDoesNotLinkToAnAccountThatWasRecovered(t *testing.T) {
	p := hunt(t)
	thief, owner := p.visitor(), p.visitor()
	thief.is(thief.register("ada@example.com", "the password of the thief"), http.StatusNoContent)
	p.deliver("", "")

	inside, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	p.github.pause = func() { close(inside); <-goOn }
	state, done := thief.leave(), make(chan answer)
	go func() { done <- thief.ask("GET", "/auth/callback?code=666&state="+state, "") }()
	<-inside
	owner.recover("ada@example.com", "the password of the owner")
	release()
	if to := (<-done).Header.Get("Location"); to != "/out?reason=denied" {
		t.Errorf("the thief is sent to %s", to)
	}
	owner.is(owner.login("ada@example.com", "the password of the owner"), http.StatusNoContent)
	p.github.pause = nil
	back := p.visitor()
	back.visit("666")
	if back.whoami() == owner.whoami() {
		t.Error("the thief has kept a way in")
	}
}

// The account is recovered at the one moment at which its ways in have been
// looked through and the thief's is not yet there.
func TestAWayInThatIsLinkedDuringARecoveryGoesAgain(t *testing.T) {
	p := hunt(t)
	thief, owner := p.visitor(), p.visitor()
	thief.is(thief.register("ada@example.com", "the password of the thief"), http.StatusNoContent)
	state := thief.leave()
	p.post.saving = func() {
		p.post.saving = nil
		owner.recover("ada@example.com", "the password of the owner")
	}
	if to := thief.ask("GET", "/auth/callback?code=666&state="+state, "").Header.Get("Location"); to != "/out?reason=denied" {
		t.Errorf("the thief is sent to %s", to)
	}
	owner.is(owner.login("ada@example.com", "the password of the owner"), http.StatusNoContent)
	back := p.visitor()
	back.visit("666")
	if back.whoami() == owner.whoami() {
		t.Error("the thief has kept a way in")
	}
}
