package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/mail"
)

// folder is the folder of a mailer.
type folder string

func (f folder) List(limit int) ([]mail.Written, error) { return mail.List(string(f), limit) }
func (f folder) Read(name string) (mail.Written, error) { return mail.Read(string(f), name) }

func TestMailsShowTheirLinksWholeAndRenderNothing(t *testing.T) {
	t.Parallel()
	in := folder(t.TempDir())
	f := start(t, console.Options{Mails: in})
	shows(t, is(t, f.get(f.Admin, "/console/mails"), http.StatusOK), "No mail has been written yet")
	link := "http://localhost:8080/auth/email/callback?login=ada%40example.com&token=" +
		strings.Repeat("0123456789abcdef=", 8)
	sender := mail.NewFolder(string(in), nil)
	for i, m := range []mail.Message{
		{To: "ada@example.com", Subject: "Überprüfen <b>Sie</b>",
			Text: "Open " + link + ". Not javascript:alert(1)\n<script>1</script>",
			HTML: `<p onclick="x">` + link + `</p><script>2</script>`},
		{To: "bob@example.com", Subject: "Later", HTML: "<p>only html</p>"},
	} {
		m.ID, m.From, m.Date = string(rune('a'+i)), "Belfry <no-reply@example.com>",
			time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
		f.Must(sender.Send(t.Context(), m))
	}
	for name, text := range map[string]string{"secret.eml": "To: secret@example.com\r\nContent-Type: " +
		"text/plain\r\n\r\nsecret", ".hidden.eml": "", "20260103T000000.000000000Z-c.eml": "no mail"} {
		f.Must(os.WriteFile(filepath.Join(string(in), name), []byte(text), 0o600))
	}
	list := is(t, f.get(f.Admin, "/console/mails"), http.StatusOK)
	shows(t, list, "Überprüfen &lt;b&gt;Sie&lt;/b&gt;", "ada@example.com", "Later", "2026-01-02 00:00:00")
	if first, second := strings.Index(list.Text, "Later"), strings.Index(list.Text, "prüfen"); first > second ||
		strings.Contains(list.Text, "secret") {
		t.Errorf("not the latest first, or too many: %s", list.Text)
	}
	one := is(t, f.get(f.Admin, "/console/mails/20260101T000000.000000000Z-a.eml"), http.StatusOK)
	shows(t, one, `href="`+strings.ReplaceAll(link, "&", "&amp;")+`"`, "&lt;script&gt;1", "&lt;script&gt;2",
		"onclick=&#34;x&#34;")
	if strings.Contains(one.Text, "<script>1") || strings.Contains(one.Text, "<script>2") ||
		strings.Contains(one.Text, `href="javascript`) || strings.Contains(one.Text, "<iframe") {
		t.Errorf("the mail is rendered: %s", one.Text)
	}
	for _, name := range []string{"secret.eml", "..%2fsecret.eml", ".hidden.eml", "20260103T000000.000000000Z-c.eml",
		"none", "20260101T000000.000000000Z-a.eml%00"} {
		is(t, f.get(f.Admin, "/console/mails/"+name), http.StatusNotFound)
	}
	for token, status := range map[string]int{"": http.StatusSeeOther, f.User: http.StatusForbidden} {
		for _, path := range []string{"/console/mails", "/console/mails/20260101T000000.000000000Z-a.eml"} {
			if r := is(t, f.get(token, path), status); strings.Contains(r.Text, "token=") {
				t.Errorf("%s shows a token", path)
			}
		}
	}
	other := start(t, console.Options{}) // with another mailer there is no view
	is(t, other.get(other.Admin, "/console/mails"), http.StatusNotFound)
}
