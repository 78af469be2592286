package app

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/account/admin"
	"belfry/test/mailbox"
)

var mailedLink = regexp.MustCompile(`http://\S+/auth/email/callback\?\S+`)

// An invitation says so, in its mail and on the page to which its link leads. The texts of the configuration replace
// those of the mail.
func TestAnInvitationHasTextsOfItsOwn(t *testing.T) {
	server := mailbox.Start(t)
	text := mailing(server, ", tls: none") + "branding: {name: Kitchen}\n"
	f := &profiled{place: newPlace(t, text), cookies: map[string]string{}}
	f.app, _ = f.reloadable()
	const eve, form = "eve@example.com", "application/x-www-form-urlencoded"
	invite := func(login string) mailbox.Mail {
		t.Helper()
		users := f.app.now().Auth.Admin
		user := must(users.CreateUser(t.Context(), admin.NewUser{Login: login}))
		if _, err := users.Invite(t.Context(), user.UUID); err != nil {
			t.Fatal(err)
		}
		return server.Await(t, login, 1)[0]
	}
	mail := invite(eve)
	if mail.Subject != "You are invited to Kitchen" || !strings.Contains(mail.Text,
		"Choose a password for your account "+eve) {
		t.Errorf("the mail %q: %s", mail.Subject, mail.Text)
	}
	link := must(url.Parse(mailedLink.FindString(mail.Text)))
	res, _ := f.send("GET", link.RequestURI(), "", "", http.StatusFound)
	page := res.Header.Get("Location")
	f.shows(page, "<h1>Choose a password</h1>", `name="_page" value="invitation"`)

	send := func(password string) string {
		t.Helper()
		query := link.Query()
		fields := url.Values{"_page": {"invitation"}, "login": {eve}, "token": {query.Get("token")},
			"password": {password}}
		res, _ := f.send("POST", "/auth/email/recovery", form, fields.Encode(), http.StatusSeeOther)
		return res.Header.Get("Location")
	}
	again := send("short")
	if !strings.HasPrefix(again, "/recovery?invited=true&login=") || !strings.Contains(again, "reason=invalid") {
		t.Errorf("a short password leads to %s", again)
	}
	f.shows(again, "<h1>Choose a password</h1>", `role="alert"`)
	if done := send("a fine password"); done != "/recovery?password=set" {
		t.Errorf("the password leads to %s", done)
	}

	f.reload(f.app, strings.Replace(text, "from: bells@example.com",
		`from: bells@example.com, invitation: {subject: "Cook with us", text: "Come in: {{.Link}}"}`, 1))
	if mail := invite("bob@example.com"); mail.Subject != "Cook with us" || !strings.HasPrefix(mail.Text,
		"Come in: http://") {
		t.Errorf("the mail %q: %s", mail.Subject, mail.Text)
	}
}
