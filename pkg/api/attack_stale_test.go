package api_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// A request can start with a valid session and be delayed, for instance by a
// slow body, until the session has ended. It must not undo what ended the
// session.

func TestADelayedRequestOfAnEndedSessionSetsNoPassword(t *testing.T) {
	p := newAttackFixture(t)
	thief, owner := p.newBrowser(), p.newBrowser()
	thief.wantStatus(thief.register("ada@example.com", "the password of the thief"), http.StatusNoContent)
	stale := sessions.Client{Session: thief.session()}
	owner.recover("ada@example.com", "the password of the owner")

	if _, err := p.auth.Recovery.ChangePassword(t.Context(), "the password of the thief", "again that of the thief",
		stale); !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("the thief changes the password: %v", err)
	}
	_, _, err := p.auth.Registration.Register(t.Context(),
		passwords.Credentials{Login: "thief@example.com", Password: "the password of the thief"}, stale)
	if !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("the thief adds an address: %v", err)
	}
	owner.wantStatus(owner.login("ada@example.com", "the password of the owner"), http.StatusNoContent)
	if back := p.newBrowser(); back.login("thief@example.com",
		"the password of the owner").StatusCode == http.StatusNoContent {
		t.Error("the thief has kept a way in")
	}
}

// A user who registered through a provider has no password, and sets the first
// one without giving another.
func TestADelayedRequestOfAnEndedSessionSetsNoFirstPassword(t *testing.T) {
	p := newAttackFixture(t)
	owner := p.newBrowser()
	owner.loginByProvider("583231")
	stale := sessions.Client{Session: owner.session()}
	owner.wantStatus(owner.request("PUT", "/auth/email", `{"newPassword":"the password of the owner"}`),
		http.StatusNoContent)

	if _, err := p.auth.Recovery.ChangePassword(t.Context(), "", "the password of the thief", stale); !errors.Is(err,
		errs.Unauthenticated) {
		t.Errorf("the thief sets a password: %v", err)
	}
	if _, _, err := p.auth.Registration.Register(t.Context(),
		passwords.Credentials{Login: "thief@example.com", Password: "the password of the thief"},
		stale); !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("the thief sets a password with an address: %v", err)
	}
	owner.wantStatus(owner.request("PUT", "/auth/email",
		`{"password":"the password of the owner","newPassword":"another password"}`), http.StatusNoContent)
}

func TestADelayedOAuthCallbackDoesNotLinkAfterARecovery(t *testing.T) {
	p := newAttackFixture(t)
	thief, owner := p.newBrowser(), p.newBrowser()
	thief.wantStatus(thief.register("ada@example.com", "the password of the thief"), http.StatusNoContent)
	p.deliverMails("", "")

	inside, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	p.github.beforeFinish = func() { close(inside); <-goOn }
	state, done := thief.redirect(), make(chan response)
	go func() { done <- thief.request("GET", "/auth/callback?code=666&state="+state, "") }()
	<-inside
	owner.recover("ada@example.com", "the password of the owner")
	release()
	if to := (<-done).Header.Get("Location"); to != "/out?reason=denied" {
		t.Errorf("the thief is sent to %s", to)
	}
	owner.wantStatus(owner.login("ada@example.com", "the password of the owner"), http.StatusNoContent)
	p.github.beforeFinish = nil
	back := p.newBrowser()
	back.loginByProvider("666")
	if back.currentUser() == owner.currentUser() {
		t.Error("the thief has kept a way in")
	}
}

// The account is recovered just after its idents were listed and before the
// attacker's ident exists.
func TestAnIdentLinkedDuringARecoveryIsDeleted(t *testing.T) {
	p := newAttackFixture(t)
	thief, owner := p.newBrowser(), p.newBrowser()
	thief.wantStatus(thief.register("ada@example.com", "the password of the thief"), http.StatusNoContent)
	state := thief.redirect()
	p.outbox.beforeSave = func() {
		p.outbox.beforeSave = nil
		owner.recover("ada@example.com", "the password of the owner")
	}
	if to := thief.request("GET", "/auth/callback?code=666&state="+state,
		"").Header.Get("Location"); to != "/out?reason=denied" {
		t.Errorf("the thief is sent to %s", to)
	}
	owner.wantStatus(owner.login("ada@example.com", "the password of the owner"), http.StatusNoContent)
	back := p.newBrowser()
	back.loginByProvider("666")
	if back.currentUser() == owner.currentUser() {
		t.Error("the thief has kept a way in")
	}
}
