package api_test

import (
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// Only the token of its mail reveals whether an address is taken.
func TestAddingAnAddressDoesNotRevealItsOwner(t *testing.T) {
	p := newAttackFixture(t, withValidationFirst, withUniformErrors)
	ada, eve := p.newBrowser(), p.newBrowser()
	ada.register("ada@example.com", "the password of ada")
	token := p.deliverMails("ada@example.com", "validate")
	ada.wantStatus(ada.register("ada@example.com", "the password of ada", `"token":"`+token+`"`), http.StatusNoContent)

	eve.loginByProvider("666")
	for _, login := range []string{"ada@example.com", "bob@example.com"} {
		eve.wantStatus(eve.register(login, "the password of eve", `"token":"wrong"`), http.StatusForbidden)
		eve.wantStatus(eve.register(login, "the password of eve"), http.StatusAccepted)
	}
}

func TestRegistrationIgnoresServerOwnedFields(t *testing.T) {
	p := newAttackFixture(t)
	ada, eve := p.newBrowser(), p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	eve.wantStatus(eve.register("eve@example.com", "the password of eve", `"user":"`+ada.currentUser()+`"`,
		`"uuid":"`+ada.currentUser()+`"`,
		`"idents":[{"uuid":"ada@example.com_email"}]`, `"_epoch":7`, `"_unlinked":["ada@example.com_email"]`,
		`"created":"2000"`), http.StatusNoContent)
	me := eve.wantStatus(eve.request("GET", "/auth/me", ""), http.StatusOK).text
	for _, stolen := range []string{ada.currentUser(), "ada@example.com", "2000", "_"} {
		if strings.Contains(strings.ReplaceAll(me, eve.currentUser(), ""), stolen) {
			t.Errorf("%s is in %s", stolen, me)
		}
	}
	stored, err := p.users.Get(t.Context(), eve.currentUser())
	p.must(err)
	if object.Field(stored.Body, "_epoch") != nil || object.Field(stored.Body, "_unlinked") != nil {
		t.Error("a form sets what is internal")
	}
	ada.wantStatus(ada.request("GET", "/users/"+eve.currentUser(), ""), http.StatusForbidden)
}

// A hash that is replaced is visible to no policy.
func TestAReplacedHashIsAWriteOfTheService(t *testing.T) {
	p := newAttackFixture(t)
	ada := p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	more := p.opts
	more.Hash.Time = 2
	stronger := account.New(more)
	seen := make(chan event.Envelope, 64)
	p.outbox.mu.Lock()
	p.outbox.onUserEvent = func(e event.Envelope) { seen <- e }
	p.outbox.mu.Unlock()
	p.serve(stronger)
	ada.wantStatus(ada.register("ada@example.org", "the password of ada"), http.StatusNoContent)
	stronger.Close()
	close(seen)
	n := 0
	for e := range seen {
		n++
		if e.Origin != event.OriginAuth {
			t.Errorf("a write of %q: %s", e.Origin, e.Object)
		}
	}
	if n == 0 {
		t.Error("the hash has not been replaced")
	}
}
