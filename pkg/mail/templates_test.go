package mail_test

import (
	"strings"
	"sync"
	"testing"

	"belfry/pkg/errs"
	belfry "belfry/pkg/mail"
)

var data = belfry.Data{
	Link:  "https://example.com/auth?login=a%2Bb%40example.org&token=" + secret,
	Token: secret,
	Login: `<b>"Ada" & co</b>`,
}

func TestRender(t *testing.T) {
	for _, c := range []struct{ name, subject, html, text, wantSubject, wantHTML, wantText string }{
		{
			"all", "Hello {{.Login}}\n", `<a href="{{.Link}}" title="{{.Login}}">{{.Login}}</a> {{.Token}}`,
			"{{.Login}}:\n{{.Link}}\n{{.Token}}\n", `Hello <b>"Ada" & co</b>`,
			`<a href="https://example.com/auth?login=a%2Bb%40example.org&amp;token=` + secret +
				`" title="&lt;b&gt;&#34;Ada&#34; &amp; co&lt;/b&gt;">&lt;b&gt;&#34;Ada&#34; &amp; co&lt;/b&gt;</a> ` +
				secret,
			data.Login + ":\n" + data.Link + "\n" + secret + "\n",
		},
		{"text alone", "s", "", "t", "s", "", "t"},
		{"html alone", "s", "<p>h</p>", " \n", "s", "<p>h</p>", ""},
		{"subject of lines", "\n  a\r\n\tb  c{{/* said */}} \n", "", "t", "a b c", "", "t"},
		{"conditions", `{{if .Token}}{{len .Token}}{{else}}none{{end}}`, "",
			`{{define "x"}}x{{.Token}}{{end}}{{template "x" .}}`, "14", "", "x" + secret},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmpl, err := belfry.ParseTemplates(c.subject, c.html, c.text)
			if err != nil {
				t.Fatal(err)
			}
			subject, html, text, err := tmpl.Render(data)
			if err != nil || subject != c.wantSubject || html != c.wantHTML || text != c.wantText {
				t.Errorf("%q\n%q\n%q\n%v", subject, html, text, err)
			}
		})
	}
}

func TestALoginIsEscaped(t *testing.T) {
	tmpl, err := belfry.ParseTemplates("for {{.Login}}", `<a href="{{.Link}}">{{.Login}}</a>`, "{{.Login}}")
	if err != nil {
		t.Fatal(err)
	}
	subject, html, _, err := tmpl.Render(belfry.Data{Login: "a\r\nBcc: eve@example.com\u2028<script>",
		Link: "javascript:alert(1)"})
	if err != nil || subject != "for a Bcc: eve@example.com <script>" || strings.Contains(html, "<script>") ||
		strings.Contains(html, "javascript") {
		t.Errorf("%q, %q, %v", subject, html, err)
	}
}

func TestInvalidTemplatesAreRejected(t *testing.T) {
	for _, c := range []struct{ name, subject, html, text, names string }{
		{"field of the subject", "{{.Foo}}", "", "t", "subject"},
		{"field of the html", "s", "{{.Foo}}", "t", "html"},
		{"field of the text", "s", "", "{{.Login}} {{.Foo}}", "text"},
		{"syntax of the subject", "{{", "", "t", "subject"},
		{"syntax of the html", "s", "{{end}}", "t", "html"},
		{"syntax of the text", "s", "", "{{if .Link}}", "text"},
		{"html that can't be escaped", "s", `<a href="{{if .Link}}">x{{end}}`, "t", "html"},
		{"no such template", "s", "", `{{template "x"}}`, "text"},
		{"no such function", "s", "", `{{env "HOME"}}`, "text"},
		{"too long", "s", "", strings.Repeat("x", 64<<10+1), "text"},
		{"too long, and no end", "s", "", `{{define "x"}}x{{template "x"}}{{end}}{{template "x"}}`, "text"},
		{"no subject", " \n", "", "t", "subject"},
		{"subject with a control character", "a\ab", "", "t", "subject"},
		{"subject with an encoded word", "=?utf-8?q?a?=", "", "t", "subject"},
		{"subject that is too long", strings.Repeat("x", 1000), "", "t", "subject"},
		{"neither html nor text", "s", " ", "\n", "neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := belfry.ParseTemplates(c.subject, c.html, c.text)
			wantError(t, err, errs.Invalid, c.names)
		})
	}
}

// An error that depends on the data is reported by its position.
func TestInvalidDataIsRejected(t *testing.T) {
	tmpl, err := belfry.ParseTemplates("s", "",
		"\n{{if eq .Token \""+secret+"\"}}{{range .Token}}{{.Foo}}{{end}}{{end}}{{.Login}}")
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, err = tmpl.Render(data)
	wantError(t, err, errs.Invalid, "text", "line 2")
	_, _, _, err = tmpl.Render(belfry.Data{Login: strings.Repeat("x", 64<<10)})
	wantError(t, err, errs.Invalid, "longer than 64 KiB")
	if _, _, text, err := tmpl.Render(belfry.Data{Login: strings.Repeat("x", 64<<10-1)}); err != nil ||
		len(text) != 64<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestConcurrentRendering(t *testing.T) {
	tmpl, err := belfry.ParseTemplates("{{.Login}}", "{{.Login}}", "{{.Login}}")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			login := strings.Repeat("x", i)
			if s, h, text, err := tmpl.Render(belfry.Data{Login: login}); err != nil ||
				s+h+text != strings.Repeat(login, 3) {
				t.Errorf("%q %q %q %v", s, h, text, err)
			}
		})
	}
	all.Wait()
}
