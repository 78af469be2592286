package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
)

func TestAMailIsSentFromTheConsole(t *testing.T) {
	t.Parallel()
	o := aSystem()
	fails, sent := "", []string{}
	o.Mail = &console.Mailer{
		Name: "default", Type: "smtp", From: "Belfry <bells@example.com>",
		Failing: func(context.Context) string { return fails },
	}
	try := operation(command.Mail.Untyped(), nil)
	if fields := try.Fields(); len(fields) != 1 || fields[0].Name != "to" {
		t.Errorf("the form has %+v: admins choose the address, and no mailer", fields)
	}
	try.Do = func(_ context.Context, form url.Values) (string, error) {
		to := form.Get("to")
		if strings.HasPrefix(to, "refused") {
			return "", errs.New(errs.Unavailable, "the mail was not sent: 535 <no>")
		}
		sent = append(sent, to)
		return "the server has accepted the mail to " + to, nil
	}
	var last *console.Done
	try.Last = func() *console.Done { return last }
	settings := &console.Settings{}
	f := start(t, console.Options{System: o, Settings: settings, Operations: []console.Operation{try}})
	shows(t, is(t, f.get(f.Admin, "/console/system"), http.StatusOK),
		"<code>default</code>, from Belfry &lt;bells@example.com&gt;", `href="/console/settings"`)
	r := is(t, f.get(f.Admin, "/console/settings"), http.StatusOK)
	shows(t, r, "<code>default</code>", "Belfry &lt;bells@example.com&gt;", `action="/console/settings/mail"`,
		`name="to" value="ada@example.com"`)
	if strings.Contains(r.Text, "Last test") {
		t.Error("a test is shown that was not made")
	}
	fails = "since 2026-01-02 03:04:05 UTC: connecting failed"
	for _, page := range []string{"/console/system", "/console/settings"} {
		shows(t, is(t, f.get(f.Admin, page), http.StatusOK), "Mails can't be sent since 2026-01-02 03:04:05 UTC: connecting failed",
			`<span class="tag bad">fails</span>`)
	}
	last = &console.Done{At: time.Unix(0, 0), Says: "the server has accepted it"}
	shows(t, is(t, f.get(f.Admin, "/console/settings"), http.StatusOK), "1970-01-01 00:00:00 UTC",
		"the server has accepted it")
	last.Err = errs.New(errs.Unavailable, "535 <no>")
	shows(t, is(t, f.get(f.Admin, "/console/settings"), http.StatusOK), "535 &lt;no&gt;",
		`<span class="tag bad">failed</span>`)

	is(t, f.post(f.Admin, "/console/settings/mail", "to=+ada%40example.com+"), http.StatusSeeOther)
	shows(t, is(t, f.post(f.Admin, "/console/settings/mail", "to=refused%40example.com"), http.StatusServiceUnavailable),
		"the mail was not sent: 535 &lt;no&gt;")
	is(t, f.post(f.Admin, "/console/settings/mail", "to="), http.StatusBadRequest)
	is(t, f.post(f.Admin, "/console/settings/mail", "to="+strings.Repeat("a", 255)), http.StatusBadRequest)
	for token, status := range map[string]int{"": http.StatusSeeOther, f.User: http.StatusForbidden} {
		is(t, f.post(token, "/console/settings/mail", "to=eve%40example.com"), status)
	}
	if len(sent) != 1 || sent[0] != "ada@example.com" {
		t.Errorf("sent to %q", sent)
	}
	other := start(t, console.Options{System: aSystem(), Settings: settings, Operations: []console.Operation{try}})
	if r := is(t, other.get(other.Admin, "/console/settings"), http.StatusOK); strings.Contains(r.Text,
		"/console/settings/mail") {
		t.Error("there is a form without a mailer")
	}
}

func TestSettingsShowWhatIsConfigured(t *testing.T) {
	t.Parallel()
	s := &console.Settings{File: "/etc/belfry.yaml", Callback: "https://example.com/auth/callback",
		Providers: []console.SettingsProvider{{Name: "google", Kind: "OAuth 2", Enabled: true, Returns: true},
			{Name: hostile, Kind: "OpenID Connect, " + hostile}},
		Limits: []console.SettingsLimits{{Title: "Sizes", All: []console.Setting{
			{Key: "maxObjectSize", Value: "64KiB", Default: "256KiB"}, {Key: "other", Value: "1", Default: "1"}}}},
		Pages: []console.SettingsPage{{Name: "login", Path: "/login"}}, Templates: "/srv/pages\u202e",
		Branding: []console.Setting{{Key: "branding.name", Value: "Books & Co"}}, Languages: "/srv/languages",
		Redirects: []console.Setting{{Key: "authentication.successRedirect", Value: "/welcome"}},
	}
	f := start(t, console.Options{Settings: s})
	r := is(t, f.get(f.Admin, "/console/settings"), http.StatusOK)
	shows(t, r, "/etc/belfry.yaml", `<code id="callback" class="path">https://example.com/auth/callback</code>`,
		`data-copy="callback"`, "OAuth 2", "<strong>64KiB</strong>", `<a href="/login">`, `/srv/pages\u202e`, "/welcome",
		"Books &amp; Co", "/srv/languages", "No mails are sent", "Changes are made in the file")
	if strings.Contains(r.Text, hostile) || strings.Contains(r.Text, "/console/configuration") {
		t.Errorf("a name is not escaped, or a form is linked that does not exist: %s", r.Text)
	}
	empty := start(t, console.Options{Settings: &console.Settings{}})
	shows(t, is(t, empty.get(empty.Admin, "/console/settings"), http.StatusOK), "The configuration has none",
		"belfry serves none", "<code>branding</code> is not set")
	is(t, f.get("", "/console/settings"), http.StatusSeeOther)
	is(t, f.get(f.User, "/console/settings"), http.StatusForbidden)
}
