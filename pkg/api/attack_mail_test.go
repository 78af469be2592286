package api_test

import (
	"fmt"
	"net/http"
	"testing"
)

// The token may be used before the mail is recorded as sent.
func TestAMailIsSentOnceWhenItsTokenIsUsedImmediately(t *testing.T) {
	p := newAttackFixture(t)
	ada := p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	p.outbox.afterSend = func(token string) {
		p.outbox.afterSend = nil
		ada.wantStatus(ada.request("GET", "/auth/email/callback?login=ada@example.com&token="+token, ""),
			http.StatusFound)
		p.deliverMails("", "")
	}
	p.deliverMails("", "")
	if n := len(p.outbox.mails); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// A stranger who keeps requesting mails that are not sent must not prevent the
// owner of an account from requesting theirs.
func TestStrangersCannotDelayARecovery(t *testing.T) {
	p := newAttackFixture(t, withMailInterval)
	ada, eve := p.newBrowser(), p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	p.deliverMails("", "")
	eve.request("POST", "/auth/email/validation", `{"login":"ada@example.com"}`)
	eve.register("ada@example.com", "the password of eve")
	ada.wantStatus(ada.request("POST", "/auth/email/recovery", `{"login":"ada@example.com"}`), http.StatusAccepted)

	// A stranger's request before the mail is sent does not replace it.
	eve.request("POST", "/auth/email/validation", `{"login":"ada@example.com"}`)
	token := p.deliverMails("ada@example.com", "recover")
	if token == "" {
		t.Fatal("no mail")
	}
	if to := ada.request("GET", "/auth/email/callback?login=ada@example.com&token="+token,
		"").Header.Get("Location"); to != "/again?login=ada%40example.com&token="+token {
		t.Errorf("the link leads to %s", to)
	}
	ada.wantStatus(ada.request("PUT", "/auth/email/recovery",
		fmt.Sprintf(`{"login":"ada@example.com","password":"a new password","token":%q}`, token)), http.StatusNoContent)
}

// The same for registration, where addresses are validated first.
func TestStrangersCannotDelayARegistration(t *testing.T) {
	p := newAttackFixture(t, withMailInterval, withValidationFirst)
	ada, eve := p.newBrowser(), p.newBrowser()
	eve.wantStatus(eve.request("POST", "/auth/email/validation", `{"login":"ada@example.com"}`), http.StatusAccepted)
	eve.wantStatus(eve.request("POST", "/auth/email/recovery", `{"login":"ada@example.com"}`), http.StatusAccepted)
	ada.register("ada@example.com", "the password of ada")
	token := p.deliverMails("ada@example.com", "validate")
	if token == "" {
		t.Fatal("no mail")
	}
	ada.wantStatus(ada.register("ada@example.com", "the password of ada", fmt.Sprintf(`"token":%q`, token)),
		http.StatusNoContent)
}
