package auth_test

import (
	"fmt"
	"net/http"
	"testing"
)

// Who is quicker than the note that a mail is out does not get a second one.
func TestAMailIsSentOnceThoughItsTokenIsUsedAtOnce(t *testing.T) {
	p := hunt(t)
	ada := p.visitor()
	ada.is(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	p.post.sending = func(token string) {
		p.post.sending = nil
		ada.is(ada.ask("GET", "/auth/email/callback?login=ada@example.com&token="+token, ""), http.StatusFound)
		p.deliver("", "")
	}
	p.deliver("", "")
	if n := len(p.post.mails); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// A stranger who keeps asking for mails that nobody is sent must not keep the
// owner of an account from asking for theirs.
func TestNobodyKeepsTheOwnerFromRecovering(t *testing.T) {
	p := hunt(t, preyInterval)
	ada, eve := p.visitor(), p.visitor()
	ada.is(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	p.deliver("", "")
	eve.ask("POST", "/auth/email/validation", `{"login":"ada@example.com"}`)
	eve.register("ada@example.com", "the password of eve")
	ada.is(ada.ask("POST", "/auth/email/recovery", `{"login":"ada@example.com"}`), http.StatusAccepted)

	// What a stranger asks for before the mail is out does not take its place.
	eve.ask("POST", "/auth/email/validation", `{"login":"ada@example.com"}`)
	token := p.deliver("ada@example.com", "recover")
	if token == "" {
		t.Fatal("no mail")
	}
	if to := ada.ask("GET", "/auth/email/callback?login=ada@example.com&token="+token, "").Header.Get("Location"); to != "/again?login=ada%40example.com&token="+token {
		t.Errorf("the link leads to %s", to)
	}
	ada.is(ada.ask("PUT", "/auth/email/recovery", fmt.Sprintf(`{"login":"ada@example.com","password":"a new password","token":%q}`, token)), http.StatusNoContent)
}

// Where the address is validated first, the same for who wants to register.
func TestNobodyKeepsAnotherFromRegistering(t *testing.T) {
	p := hunt(t, preyInterval, preyFirst)
	ada, eve := p.visitor(), p.visitor()
	eve.is(eve.ask("POST", "/auth/email/validation", `{"login":"ada@example.com"}`), http.StatusAccepted)
	eve.is(eve.ask("POST", "/auth/email/recovery", `{"login":"ada@example.com"}`), http.StatusAccepted)
	ada.register("ada@example.com", "the password of ada")
	token := p.deliver("ada@example.com", "validate")
	if token == "" {
		t.Fatal("no mail")
	}
	ada.is(ada.register("ada@example.com", "the password of ada", fmt.Sprintf(`"token":%q`, token)), http.StatusNoContent)
}
