package api_test

import (
	"net/http"
	"net/url"
	"testing"
)

// Where addresses are validated afterwards, a stranger can register an address
// before its owner does.

// The owner of the address, or a mail scanner, follows the link of a mail that
// they did not request. That validates the address, and does not prove the
// account.
func TestFollowingALinkDoesNotProveTheAccount(t *testing.T) {
	p := newAttackFixture(t)
	eve, ada := p.newBrowser(), p.newBrowser()
	eve.wantStatus(eve.register("ada@example.com", "the password of eve"), http.StatusNoContent)
	token := p.deliverMails("ada@example.com", "validate")
	if to := ada.request("GET", "/auth/email/callback?login=ada@example.com&token="+token,
		"").Header.Get("Location"); to != "/in?validation=email" {
		t.Fatalf("the link leads to %s", to)
	}
	eve.loginByProvider("666")
	ada.recover("ada@example.com", "the password of ada")
	ada.wantStatus(ada.login("ada@example.com", "the password of ada"), http.StatusNoContent)
	back := p.newBrowser()
	back.loginByProvider("666")
	if back.currentUser() == ada.currentUser() {
		t.Error("eve has kept a way in")
	}
}

// A user who is logged in when following the link has proven both, and keeps
// linked identities at a recovery.
func TestRecoveryKeepsIdentsOfAProvenAddress(t *testing.T) {
	p := newAttackFixture(t)
	ada := p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	token := p.deliverMails("ada@example.com", "validate")
	me := ada.currentUser()
	ada.loginByProvider("1815")
	ada.request("GET", "/auth/email/callback?"+url.Values{"login": {"ada@example.com"}, "token": {token}}.Encode(), "")
	ada.recover("ada@example.com", "a new password")
	back := p.newBrowser()
	back.loginByProvider("1815")
	if back.currentUser() != me {
		t.Error("ada has lost a way in")
	}
}

// An address that was added to an account, perhaps by mistake, and not proven
// does not give its owner that account. A recovery gives them an account of
// their own.
func TestAnAddedAddressCannotRecoverTheAccount(t *testing.T) {
	p := newAttackFixture(t)
	ada, eve := p.newBrowser(), p.newBrowser()
	ada.loginByProvider("1815")
	me := ada.currentUser()
	ada.wantStatus(ada.register("eve@example.com", "the password of ada"), http.StatusNoContent)
	eve.recover("eve@example.com", "the password of eve")

	if ada.currentUser() != me {
		t.Error("ada's session has ended")
	}
	back := p.newBrowser()
	back.loginByProvider("1815")
	if back.currentUser() != me {
		t.Error("ada has lost a way in")
	}
	eve.wantStatus(eve.login("eve@example.com", "the password of ada"), http.StatusForbidden)
	eve.wantStatus(eve.login("eve@example.com", "the password of eve"), http.StatusNoContent)
	if who := eve.currentUser(); who == me || who == "" {
		t.Errorf("eve is %q", who)
	}
}
