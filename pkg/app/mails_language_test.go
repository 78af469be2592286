package app

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/test/mailbox"
)

// Each mail that a request asks for is in the language of that request, which no other request has set.
func TestMailsAreInTheLanguageOfTheirRequests(t *testing.T) {
	server := mailbox.Start(t)
	f := &profiled{cookies: map[string]string{}, headers: []string{"Accept-Language", "xx, de;q=0.9"}}
	f.place = newPlace(t, strings.Replace(mailing(server, ", tls: none"), "from: bells@example.com",
		"from: bells@example.com, postValidation: true, mailInterval: 0s, login: {code: true, link: true}", 1))
	f.app, _ = f.reloadable()
	const ada, form = "ada@example.com", "application/x-www-form-urlencoded"
	sent := map[string]int{}
	mailed := func(to, subject string) mailbox.Mail {
		t.Helper()
		sent[to]++
		all := server.Await(t, to, sent[to])
		if mail := all[len(all)-1]; mail.Subject != subject {
			t.Errorf("the subject is %q, want %q", mail.Subject, subject)
		}
		return all[len(all)-1]
	}
	send := func(method, path, media, body string, status int) string {
		t.Helper()
		_, text := f.send(method, path, media, body, status)
		return text
	}
	send("POST", "/auth/email", "application/json", `{"register":true,"login":"`+ada+`","password":"a fine password"}`,
		http.StatusNoContent)
	mailed(ada, "Bestätigen Sie Ihre Adresse")
	send("POST", "/auth/email/validation", form, "login="+ada, http.StatusSeeOther)
	mailed(ada, "Bestätigen Sie Ihre Adresse")
	send("POST", "/auth/email/recovery", form, "login="+ada, http.StatusSeeOther)
	mailed(ada, "Neues Passwort setzen")
	send("POST", "/auth/email/code", form, "login="+ada, http.StatusSeeOther)
	mailed(ada, "Ihr Code zum Anmelden")

	send("POST", "/auth/factors/email", "application/json", "{}", http.StatusAccepted)
	mailed(ada, "Ihr Code zum Anmelden")

	if _, err := f.ask(command.UserRequest{Act: command.GrantAdmin, User: ada}); err != nil {
		t.Fatal(err)
	}
	send("POST", "/console/users", form,
		url.Values{"kind": {"person"}, "login": {"eve@example.com"}, "mail": {"true"}}.Encode(), http.StatusSeeOther)
	mailed("eve@example.com", "Sie sind eingeladen")
}
