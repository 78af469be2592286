package app

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/app/command"
)

var firstLink = regexp.MustCompile(
	`^http://localhost:\d+/console/first\?token=([\w-]{43})  \(makes the first admin; works once, until \d\d:\d\d [\w+-]+\)$`)

func TestTheFirstAdminIsOfferedToPeopleAlone(t *testing.T) {
	p := newPlace(t, managed)
	a := p.start()
	offer := func(a *App, printLink bool) string {
		t.Helper()
		line, err := a.FirstAdmin(t.Context(), printLink)
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	if line := offer(a, false); !strings.Contains(line, "belfry user create ADDRESS --admin") ||
		strings.Contains(line, "token") {
		t.Error(line)
	}
	found := firstLink.FindStringSubmatch(offer(a, true))
	if found == nil {
		t.Fatal(offer(a, true))
	}
	link, _, _ := strings.Cut(found[0], " ")
	p.stop(a)

	// After a restart, at another port, the same token is valid until somebody has used one.
	a = p.start()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	p.want(a, http.MethodGet, u.RequestURI(), "", http.StatusOK)
	if firstLink.FindStringSubmatch(offer(a, true)) == nil {
		t.Error("no link after a restart")
	}
	root := p.mustAsk(command.UserRequest{Act: command.CreateUser, Login: "root@example.com",
		Password: "a fine password", Admin: true})
	if !root.Admin {
		t.Error("no admin")
	}
	p.want(a, http.MethodGet, u.RequestURI(), "", http.StatusForbidden)
	for _, printLink := range []bool{true, false} {
		if line := offer(a, printLink); line != "" {
			t.Errorf("offered although there is an admin: %s", line)
		}
	}
	if strings.Contains(p.logged.String(), found[1]) {
		t.Error("the log has the token")
	}

	// Not without a console, nor where the field admin makes no admins.
	for _, text := range []string{managed + "console: {enabled: false}\n",
		managed + "admins: user.role == \"root\"\n"} {
		p := newPlace(t, text)
		if line := offer(p.start(), true); line != "" {
			t.Errorf("offered: %s", line)
		}
	}
}
