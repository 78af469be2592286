package auth_test

import (
	"net/http"
	"net/url"
	"testing"
)

// Whoever registers somebody else's address, where addresses are validated
// afterwards, waits for its owner to come.

// The owner, or a program that looks at mails, follows the link of a mail that
// they never asked for. That proves the address, and not whose account it is.
func TestAFollowedLinkLeavesAStrangerNoWayIn(t *testing.T) {
	p := hunt(t)
	eve, ada := p.visitor(), p.visitor()
	eve.is(eve.register("ada@example.com", "the password of eve"), http.StatusNoContent)
	token := p.deliver("ada@example.com", "validate")
	if to := ada.ask("GET", "/auth/email/callback?login=ada@example.com&token="+token, "").Header.Get("Location"); to != "/in?validation=email" {
		t.Fatalf("the link leads to %s", to)
	}
	eve.visit("666")
	ada.recover("ada@example.com", "the password of ada")
	ada.is(ada.login("ada@example.com", "the password of ada"), http.StatusNoContent)
	back := p.visitor()
	back.visit("666")
	if back.whoami() == ada.whoami() {
		t.Error("eve has kept a way in")
	}
}

// Who is logged in when following the link has proven both, and keeps what they
// have linked when they forget their password.
func TestARecoveryKeepsTheWaysInOfWhoProvedTheAddress(t *testing.T) {
	p := hunt(t)
	ada := p.visitor()
	ada.is(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	token := p.deliver("ada@example.com", "validate")
	me := ada.whoami()
	ada.visit("1815")
	ada.ask("GET", "/auth/email/callback?"+url.Values{"login": {"ada@example.com"}, "token": {token}}.Encode(), "")
	ada.recover("ada@example.com", "a new password")
	back := p.visitor()
	back.visit("1815")
	if back.whoami() != me {
		t.Error("ada has lost a way in")
	}
}

// An address that somebody added to their account, maybe with a slip, and has
// not proven is no way to take that account: who proves the address gets it,
// and an account of their own.
func TestAnAddressThatWasAddedIsNoWayToTheAccount(t *testing.T) {
	p := hunt(t)
	ada, eve := p.visitor(), p.visitor()
	ada.visit("1815")
	me := ada.whoami()
	ada.is(ada.register("eve@example.com", "the password of ada"), http.StatusNoContent)
	eve.recover("eve@example.com", "the password of eve")

	if ada.whoami() != me {
		t.Error("ada's session has ended")
	}
	back := p.visitor()
	back.visit("1815")
	if back.whoami() != me {
		t.Error("ada has lost a way in")
	}
	eve.is(eve.login("eve@example.com", "the password of ada"), http.StatusForbidden)
	eve.is(eve.login("eve@example.com", "the password of eve"), http.StatusNoContent)
	if who := eve.whoami(); who == me || who == "" {
		t.Errorf("eve is %q", who)
	}
}
